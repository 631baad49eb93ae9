// Descriptors, as in mod.rs in this folder: one group for each keypoint. First wavelets, with one lane for each sample;
// then the sums of cells, with one lane for each value of a cell, in the stated order.

KERNEL(describe) {
    LOCAL f32 along[SAMPLES_OF_SQUARE], aside[SAMPLES_OF_SQUARE];
    // [value][cell]
    LOCAL f32 values[VALUES * CELLS];
    LOCAL f32 squares[CELLS];
    u32 count = wanted(counts, args.capacity, args.limit);
    u64 first = (u64)GROUP_Y * args.capacity;
    sums += args.plane.origin + (u64)GROUP_Y * args.plane.step;
    i32 lane = LANE_X;
    for (u32 at = (u32)GROUP_X; at < count; at += (u32)GROUPS_X) {
        f32 scale = oriented[first + at].scale;
        f32 cosine = directions[2 * (first + at)], sine = directions[2 * (first + at) + 1];
        i32 reach = MAX_I((i32)ROUND_EVEN(scale), 1);
        f32 step_cos = scale * cosine, step_sin = scale * sine;
        f32 x0 = oriented[first + at].x + TO_CORNER, y0 = oriented[first + at].y + TO_CORNER;
        for (i32 n = lane; n < SAMPLES_OF_SQUARE; n += DESCRIBE_GROUP) {
            f32 u = square[n], v = square[SAMPLES_OF_SQUARE + n];
            f32 across = FMA(-step_sin, v, x0), down = FMA(step_cos, v, y0);
            i32 x = (i32)ROUND_EVEN(FMA(step_cos, u, across));
            i32 y = (i32)ROUND_EVEN(FMA(step_sin, u, down));
            SUM sum_x, sum_y;
            haar(sums, args.plane, x, y, reach, &sum_x, &sum_y);
            f32 dx = signed_f32(sum_x), dy = signed_f32(sum_y);
            along[n] = FMA(cosine, dx, sine * dy);
            aside[n] = FMA(cosine, dy, -(sine * dx));
        }
        BARRIER();
        if (lane < VALUES * CELLS) {
            i32 cell = lane % CELLS, value = ORDER[lane / CELLS];
            const GLOBAL f32 *weights = square + 2 * SAMPLES_OF_SQUARE;
            f32 sum = 0.0f;
            for (i32 k = 0; k < SAMPLES_OF_CELL; k++) {
#if CELLS_OVERLAP
                i32 member = (i32)weights[(SAMPLES_OF_CELL + k) * CELLS + cell];
#else
                i32 member = k * CELLS + cell;
#endif
                f32 a = along[member], b = aside[member];
#if EXTENDED
                // Σ and Σ|·| of `along` where `aside` is not negative, then where it is; then the same with the two
                // exchanged.
                f32 by = value < 4 ? b : a;
                f32 part = value < 4 ? a : b;
                part = (by >= 0.0f) == ((value & 2) == 0) ? part : 0.0f;
#else
                f32 part = value < 2 ? a : b;
#endif
                part = (value & 1) != 0 ? ABS(part) : part;
                sum = FMA(weights[k * CELLS + cell], part, sum);
            }
            values[lane] = sum;
        }
        BARRIER();
        if (lane < CELLS) {
            f32 sum = 0.0f;
            UNROLL
            for (i32 n = 0; n < VALUES; n++) sum = FMA(values[n * CELLS + lane], values[n * CELLS + lane], sum);
            squares[lane] = sum;
        }
        BARRIER();
        if (lane < VALUES * CELLS) {
            f32 tree[CELLS / 2];
            UNROLL
            for (i32 c = 0; c < 8; c++) tree[c] = squares[c] + squares[c + 8];
            UNROLL
            for (i32 c = 0; c < 4; c++) tree[c] += tree[c + 4];
            tree[0] += tree[2];
            tree[1] += tree[3];
            f32 length = SQRT(tree[0] + tree[1]);
            f32 inverse = length > 0.0f ? 1.0f / length : 0.0f;
            i32 cell = lane / VALUES;
#if COLUMNS_OUTER
            cell = cell % 4 * 4 + cell / 4;
#endif
            descriptors[(first + at) * (VALUES * CELLS) + lane] = values[lane % VALUES * CELLS + cell] * inverse;
        }
        // No barrier: the next keypoint's sums are stored only after one, and its wavelets overwrite nothing read here.
    }
}
