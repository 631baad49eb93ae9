// Samples stronger than the threshold and than all 26 neighbours, as in mod.rs in this folder, refined as in refine.rs
// and appended to the keypoints in any order.

// A searched layer, as `search` of gpu/layers.rs writes it.
typedef struct {
    // The first of its groups, and how many stand side by side.
    u32 first_group;
    i32 groups_across;
    // The samples that have all their neighbours.
    i32 columns[2], rows[2];
    i32 octave, layer;
    f32 step, centre;
    // The filter's size, and how much longer it is than the one before.
    f32 size, growth;
    // For the layer below, this one and the one above: responses from row to row, the first response's index in two
    // halves, and how many times the sampling step is halved.
    struct {
        i32 pitch;
        u32 low, high;
        i32 finer;
    } layers[3];
} SearchedLayer;

// A layer's responses about a sample.
typedef struct {
    const GLOBAL f32 *at;
    i64 row;
    i32 column;
} Neighbourhood;

FUNCTION f32 magnitude(Neighbourhood n, i32 dy, i32 dx) { return ABS(n.at[dy * n.row + dx * n.column]); }

// How many responses of a row of three are weaker.
FUNCTION i32 weaker(Neighbourhood n, i32 dy, f32 v) {
    return (v > magnitude(n, dy, -1)) + (v > magnitude(n, dy, 0)) + (v > magnitude(n, dy, 1));
}

FUNCTION i32 is_near(f32 d) {
#if OPENCV
    return ABS(d) <= 1.0f;
#else
    return ABS(d) < 0.5f;
#endif
}

FUNCTION f32 second(f32 a, f32 centre, f32 b) { return a - 2.0f * centre + b; }

FUNCTION f32 mixed(f32 a, f32 b, f32 c, f32 d) { return (a - b - c + d) * 0.25f; }

KERNEL(search) {
    i32 n = 0;
    while (n + 1 < args.layer_count && (u32)GROUP_X >= layers[n + 1].first_group) n++;
    const GLOBAL SearchedLayer *layer = layers + n;
    i32 group = GROUP_X - (i32)layer->first_group;
    i32 column = layer->columns[0] + group % layer->groups_across * TILE_X + LANE_X;
    i32 first_row = layer->rows[0] + group / layer->groups_across * (TILE_Y * ROWS_PER_LANE) + LANE_Y;
    if (column >= layer->columns[1]) return;
    responses += (u64)GROUP_Z * args.image_responses;
    for (i32 k = 0; k < ROWS_PER_LANE; k++) {
        i32 row = first_row + k * TILE_Y;
        if (row >= layer->rows[1]) return;
        Neighbourhood near_by[3];
        UNROLL
        for (i32 l = 0; l < 3; l++) {
            i32 finer = layer->layers[l].finer;
            i64 pitch = layer->layers[l].pitch;
            const GLOBAL f32 *first = responses + ((u64)layer->layers[l].high << 32 | layer->layers[l].low);
            near_by[l].at = first + ((i64)row << finer) * pitch + ((i64)column << finer);
            near_by[l].row = pitch << finer;
            near_by[l].column = 1 << finer;
        }
        Neighbourhood below = near_by[0], own = near_by[1], above = near_by[2];
        f32 signed_response = own.at[0];
        f32 v = ABS(signed_response);
        if (!(v > args.threshold)) continue;
        if (!(v > magnitude(own, 0, -1) && v > magnitude(own, 0, 1))) continue;
        if (weaker(own, -1, v) + weaker(own, 1, v) < 6) continue;
        if (weaker(above, -1, v) + weaker(above, 0, v) + weaker(above, 1, v) < 9) continue;
        if (weaker(below, -1, v) + weaker(below, 0, v) + weaker(below, 1, v) < 9) continue;

        f32 gx = -0.5f * (magnitude(own, 0, 1) - magnitude(own, 0, -1));
        f32 gy = -0.5f * (magnitude(own, 1, 0) - magnitude(own, -1, 0));
        f32 gs = -0.5f * (magnitude(above, 0, 0) - magnitude(below, 0, 0));
        f32 xx = second(magnitude(own, 0, -1), v, magnitude(own, 0, 1));
        f32 yy = second(magnitude(own, -1, 0), v, magnitude(own, 1, 0));
        f32 ss = second(magnitude(below, 0, 0), v, magnitude(above, 0, 0));
        f32 xy = mixed(magnitude(own, 1, 1), magnitude(own, 1, -1), magnitude(own, -1, 1), magnitude(own, -1, -1));
        f32 xs = mixed(magnitude(above, 0, 1), magnitude(above, 0, -1), magnitude(below, 0, 1),
                       magnitude(below, 0, -1));
        f32 ys = mixed(magnitude(above, 1, 0), magnitude(above, -1, 0), magnitude(below, 1, 0),
                       magnitude(below, -1, 0));
        // The adjugate, which is symmetric.
        f32 axx = yy * ss - ys * ys, axy = xs * ys - xy * ss, axs = xy * ys - xs * yy;
        f32 ayy = xx * ss - xs * xs, ays = xs * xy - xx * ys, ass = xx * yy - xy * xy;
        f32 determinant = xx * axx + xy * axy + xs * axs;
        f32 inverse = 1.0f / determinant;
        f32 dx = inverse * (axx * gx + axy * gy + axs * gs);
        f32 dy = inverse * (axy * gx + ayy * gy + ays * gs);
        f32 ds = inverse * (axs * gx + ays * gy + ass * gs);
        if (!(is_near(dx) && is_near(dy) && is_near(ds))) continue;

        Keypoint found;
        found.x = ((f32)column + dx) * layer->step + layer->centre;
        found.y = ((f32)row + dy) * layer->step + layer->centre;
#if OPENCV
        found.scale = ROUND_EVEN(layer->size + ds * layer->growth) * SCALE_PER_SIZE;
#else
        found.scale = 0.4f * ((f32)(2 << layer->octave) * ((f32)layer->layer + ds + 1.0f) + 1.0f);
#endif
        found.angle = 0.0f;
        found.response = v;
        found.octave_layer = (u32)(layer->octave + 128) << 8 | (u32)layer->layer;
        found.sign = signed_response > 0.0f ? 1 : -1;
        found.mark = 0u;
        if (args.mask_pitch > 0) {
            const GLOBAL u8 *own_mask = mask + (u64)GROUP_Z * args.height * args.mask_pitch;
            if (!unmasked(own_mask, args.mask_pitch, args.width, args.height, &found)) continue;
        }
        u32 slot = ATOMIC_ADD(counts + GROUP_Z, 1u);
        if (slot < args.capacity) keypoints[(u64)GROUP_Z * args.capacity + slot] = found;
    }
}
