// The last octaves of the scale space, in local memory.

// Four neighbouring sums from local memory, `stride` apart; each of the two reads a tap serves all four.
FUNCTION void blur_four(f32 *sums, const LOCAL_POINTER f32 *at, i32 stride, CONSTANT_POINTER const f32 *taps, i32 radius) {
    f32 low[4], high[4];
    UNROLL
    for (i32 i = 0; i < 4; i++) {
        low[i] = high[i] = at[i * stride];
        sums[i] = taps[0] * low[i];
    }
    for (i32 k = 1; k <= radius; k++) {
        UNROLL
        for (i32 i = 3; i > 0; i--) {
            low[i] = low[i - 1];
            high[3 - i] = high[4 - i];
        }
        low[0] = at[-k * stride];
        high[3] = at[(3 + k) * stride];
        UNROLL
        for (i32 i = 0; i < 4; i++) sums[i] = FMA(taps[k], low[i] + high[i], sums[i]);
    }
}

// All levels of the last octaves, from level 0 of the first of them: one group for each image, everything in local
// memory. They are so small that launches would take longer than the work. Level 0 of the next octave is made only of
// octaves before `decimated`.
KERNEL(blur_small) {
    const i32 decimated = args.decimated;
    // A level with HALO rows before it and after, and its vertical sums with HALO columns.
    LOCAL f32 level[SMALL_TILE];
    LOCAL f32 between[SMALL_TILE];
    i32 lane = LANE_X;
    levels += (u64)GROUP_Z * args.image_stride;
    for (i32 o = args.first; o < args.end; o++) {
        i32 width = octaves[o].width, height = octaves[o].height, pitch = octaves[o].pitch;
        i32 area = width * height, half_pitch = pitch_of(width / 2);
        // Odd, so that neighbouring rows lie in different banks.
        i32 row_len = (width + 2 * HALO + 4) | 1;
        GLOBAL f32 *out = levels + octaves[o].offset;
        LOCAL_POINTER f32 *inside = level + HALO * width;
        for (i32 i = lane; i < area; i += SMALL_GROUP) inside[i] = out[i / width * pitch + i % width];
        for (i32 l = 1; l < LEVELS + 3; l++) {
            i32 radius = RADII[l];
            CONSTANT_POINTER const f32 *taps = TAPS + FIRST_TAPS[l];
            BARRIER();
            for (i32 i = lane; i < 2 * radius * width; i += SMALL_GROUP) {
                i32 row = i / width, y = row < radius ? row - radius : height + row - radius;
                inside[y * width + i % width] = inside[border_index(y, height) * width + i % width];
            }
            BARRIER();
            for (i32 i = lane; i < (height + 3) / 4 * width; i += SMALL_GROUP) {
                i32 x = i % width, y = i / width * 4;
                f32 sums[4];
                blur_four(sums, inside + y * width + x, width, taps, radius);
                UNROLL
                for (i32 j = 0; j < 4; j++) {
                    if (y + j < height) between[(y + j) * row_len + HALO + x] = sums[j];
                }
            }
            BARRIER();
            for (i32 i = lane; i < 2 * radius * height; i += SMALL_GROUP) {
                i32 y = i % height, column = i / height;
                i32 x = column < radius ? column - radius : width + column - radius;
                LOCAL_POINTER f32 *row = between + y * row_len + HALO;
                row[x] = row[border_index(x, width)];
            }
            BARRIER();
            for (i32 i = lane; i < (width + 3) / 4 * height; i += SMALL_GROUP) {
                i32 y = i % height, x = i / height * 4;
                f32 sums[4];
                blur_four(sums, between + y * row_len + HALO + x, 1, taps, radius);
                UNROLL
                for (i32 j = 0; j < 4; j++) {
                    if (x + j < width) inside[y * width + x + j] = sums[j];
                }
            }
            BARRIER();
            out += (u64)pitch * height;
            for (i32 i = lane; i < area; i += SMALL_GROUP) {
                i32 x = i % width, y = i / width;
                out[y * pitch + x] = inside[i];
                i32 kept = l == LEVELS && o < decimated && (x | y) % 2 == 0 && x / 2 < width / 2 && y / 2 < height / 2;
                // Three levels further on lies the next octave.
                if (kept) out[3 * pitch * height + y / 2 * half_pitch + x / 2] = inside[i];
            }
        }
        BARRIER();
    }
}
