// Winner takes all: mod.rs. A group chooses the disparities of a row, PIXELS left pixels at a time: the sums of both
// passes are added into local memory, where lanes look for the least of each left pixel and of each right one.
//
// Sums lie by places (aggregation.cl): place p is disparity p in the forward pass and PADDED - 1 - p in the backward one.

// Words of the sums of a pixel, two disparities each, and one that keeps pixels in different banks.
#define PITCH (PADDED / 2 + 1)
// Lanes that look at one left pixel.
#define SEGMENTS (LANES / PIXELS)
#define NONE 0xffffffffu

// The totals of disparities d to d + 3 of a pixel.
FUNCTION void four_totals(u32 out[2], const GLOBAL u32 *forward, const GLOBAL u32 *backward, i32 d) {
#if SUM_BYTES == 1
    const u32 f = forward[d / 4], b = backward[(PADDED - 4 - d) / 4];
    out[0] = ((f & 0xffu) + (b >> 24)) | ((f >> 8 & 0xffu) + (b >> 16 & 0xffu)) << 16;
    out[1] = ((f >> 16 & 0xffu) + (b >> 8 & 0xffu)) | ((f >> 24) + (b & 0xffu)) << 16;
#else
    const u32 b0 = backward[(PADDED - 2 - d) / 2], b1 = backward[(PADDED - 4 - d) / 2];
    out[0] = forward[d / 2] + (b0 >> 16 | b0 << 16);
    out[1] = forward[d / 2 + 1] + (b1 >> 16 | b1 << 16);
#endif
}

FUNCTION u32 lesser(u32 a, u32 b) { return a < b ? a : b; }

FUNCTION u32 total_of(const LOCAL_POINTER u32 *totals, i32 pixel, i32 d) {
    return ((const LOCAL_POINTER u16 *)totals)[pixel * (2 * PITCH) + d];
}

// How far from the whole disparity the least cost is supposed.
FUNCTION f32 offset_of(i32 below, i32 at, i32 above) {
#if SUBPIXEL == PARABOLA
    const i32 twice = below - 2 * at + above;
#elif SUBPIXEL == EQUIANGULAR
    const i32 twice = (below > above ? below : above) - at;
#else
    const i32 twice = 0;
#endif
    return twice == 0 ? 0.0f : (f32)(below - above) / (f32)(2 * twice);
}

KERNEL(winner_takes_all) {
    LOCAL u32 totals[PIXELS * PITCH];
    LOCAL u32 found[LANES];
#if SECOND
    LOCAL u32 second_found[LANES];
#endif
#if RIGHT
    // The least key of the right pixels that may still get one, by their column modulo RING.
    LOCAL u32 right_keys[RING];
#endif
    const i32 lane = LANE_X, y = GROUP_X, image = GROUP_Z, width = args.width, disparities = args.disparities;
    const i32 min_disparity = args.min_disparity;
    const u64 area = (u64)width * args.height, row = (u64)y * width;
    const GLOBAL u32 *forward = sums + ((u64)(2 * image) * area + row) * (PADDED * SUM_BYTES / 4);
    const GLOBAL u32 *backward = forward + area * (PADDED * SUM_BYTES / 4);
#if MASKED
    const GLOBAL u32 *seen = left + ((u64)image * PLANES + WORDS) * area + row;
#define IS_HOLE(x) (seen[x] == 0u)
#else
#define IS_HOLE(x) false
#endif
    disparity += args.plane.step * (u64)image + (u64)y * args.plane.pitch;
    confidence += args.confidence_plane.step * (u64)image + (u64)y * args.confidence_plane.pitch;
#if RIGHT
    right += args.right_plane.step * (u64)image + (u64)y * args.right_plane.pitch;
#if MASKED
    const GLOBAL u32 *right_seen = right_words + ((u64)image * PLANES + WORDS) * area + row;
#endif
    for (i32 i = lane; i < RING; i += LANES) right_keys[i] = NONE;
    // Those that no left pixel reaches.
    for (i32 x = lane; x < width; x += LANES) {
        if (x + min_disparity > width - 1 || x + min_disparity + disparities - 1 < 0) right[x] = FLOAT_OF(0x7f800000u);
    }
#endif

    const i32 pixel = lane % PIXELS, segment = lane / PIXELS;
    for (i32 start = 0; start < width; start += PIXELS) {
        const i32 count = MIN_I(PIXELS, width - start);
        for (i32 i = lane; i < count * (PADDED / 4); i += LANES) {
            const i32 at = i / (PADDED / 4), d = i % (PADDED / 4) * 4;
            const u64 sums_at = (u64)(start + at) * (PADDED * SUM_BYTES / 4);
            u32 two[2];
            four_totals(two, forward + sums_at, backward + sums_at, d);
#if PARTIAL
            UNROLL
            for (i32 j = 0; j < 2; j++) {
                if (d + 2 * j >= disparities) two[j] |= 0xffffu;
                if (d + 2 * j + 1 >= disparities) two[j] |= 0xffff0000u;
            }
#endif
            totals[at * PITCH + d / 2] = two[0];
            totals[at * PITCH + d / 2 + 1] = two[1];
        }
        BARRIER();

#if RIGHT
        // Right pixel x meets left pixel start + i at disparity number start + i - x - min_disparity.
        const i32 first = start - min_disparity - (disparities - 1);
        for (i32 i = lane; i < disparities + count - 1; i += LANES) {
            const i32 x = first + i, ahead = disparities - 1 - i;
            if (x < 0 || x >= width) continue;
            u32 key = right_keys[x % RING];
            const i32 end = MIN_I(count, disparities - ahead);
            for (i32 p = MAX_I(0, -ahead); p < end; p++) {
                if (IS_HOLE(start + p)) continue;
                key = lesser(key, total_of(totals, p, p + ahead) * 0x10000u + (u32)(p + ahead));
            }
            // No later left pixel meets it.
            if (x + min_disparity + disparities - 1 < start + count || start + count == width) {
                f32 value = key == NONE ? FLOAT_OF(0x7f800000u) : (f32)(min_disparity + (i32)(key & 0xffffu));
#if MASKED
                if (right_seen[x] == 0u) value = FLOAT_OF(0x7f800000u);
#endif
                right[x] = value;
                key = NONE;
            }
            right_keys[x % RING] = key;
        }
#endif

        u32 key = NONE;
        if (pixel < count && segment < SEGMENTS) {
            for (i32 i = segment; i < PADDED / 2; i += SEGMENTS) {
                const u32 word = totals[pixel * PITCH + i];
                key = lesser(key, lesser(word << 16 | (u32)(2 * i), (word & 0xffff0000u) | (u32)(2 * i + 1)));
            }
        }
        found[lane] = key;
        BARRIER();
#if SECOND
        // The least sum that is not beside the best.
        for (i32 s = 0; s < SEGMENTS; s++) key = lesser(key, found[s * PIXELS + pixel]);
        u32 other = 0xffffu;
        if (pixel < count && segment < SEGMENTS) {
            const i32 taken = (i32)(key & 0xffffu);
            for (i32 d = segment; d < disparities; d += SEGMENTS) {
                if (d < taken - 1 || d > taken + 1) other = lesser(other, total_of(totals, pixel, d));
            }
        }
        second_found[lane] = other;
        BARRIER();
#endif
        if (lane < count) {
            key = found[lane];
            for (i32 s = 1; s < SEGMENTS; s++) key = lesser(key, found[s * PIXELS + lane]);
            const i32 x = start + lane, best = (i32)(key & 0xffffu), value = (i32)(key >> 16);
            bool is_sure = !IS_HOLE(x);
#if SECOND
            u32 second = second_found[lane];
            for (i32 s = 1; s < SEGMENTS; s++) second = lesser(second, second_found[s * PIXELS + lane]);
            if (args.confidence_plane.row > 0) {
                const u32 least = lesser((u32)value, second);
                confidence[x] = is_sure ? (f32)(second - least) / (f32)(second > 1u ? second : 1u) : 0.0f;
            }
            is_sure = is_sure && second * (100u - args.uniqueness) >= 100u * (u32)value;
#endif
            f32 result = FLOAT_OF(0x7f800000u);
            if (is_sure) {
                f32 offset = 0.0f;
                if (best > 0 && best + 1 < disparities) {
                    offset = offset_of((i32)total_of(totals, lane, best - 1), value, (i32)total_of(totals, lane, best + 1));
                }
                result = (f32)(min_disparity + best) + offset;
            }
            disparity[x] = result;
        }
        BARRIER();
    }
}
