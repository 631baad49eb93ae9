// Winner takes all: mod.rs. A group chooses the disparities of a row, PIXELS left pixels at a time: the sums of all
// paths are added in local memory, where lanes search for the least of each left pixel and of each right pixel.
//
// Sums come in parts, with the disparities of a pixel side by side: those of the paths from the left and from the right
// (horizontal.cl), downwards and upwards (vertical.cl).

// Words of the sums of a pixel in a part, and those that a lane adds at once.
#define PART_WORDS (PADDED * SUM_BYTES / 4)
#define CHUNK (PART_WORDS % 4 == 0 ? 4 : 1)
#define CHUNKS (PART_WORDS / CHUNK)
// Disparities in a word.
#define IN_WORD (4 / SUM_BYTES)
// The number of left pixels whose totals a lane compares for two right pixels, and the number of words before and after
// a pixel's totals that it may read.
#define RUN (PIXELS < 8 ? PIXELS : 8)
#define MARGIN (RUN / 2 + 1)
// Words of the totals of a pixel, two disparities each; odd, to keep pixels in different banks.
#define PITCH (PADDED / 2 + 2 * MARGIN + 1)
// Lanes that search one left pixel's totals.
#define SEGMENTS (LANES / PIXELS)
#define NONE 0xffffffffu

#if PART_WORDS % 4 == 0
FUNCTION void load_chunk(u32 words[CHUNK], const GLOBAL u32 *from) {
    const u32x4 four = *(const GLOBAL u32x4 *)from;
    words[0] = four.x;
    words[1] = four.y;
    words[2] = four.z;
    words[3] = four.w;
}
#else
FUNCTION void load_chunk(u32 words[CHUNK], const GLOBAL u32 *from) { words[0] = from[0]; }
#endif

// Adds words of sums, in halves of words.
FUNCTION void add_chunk(u32 totals[CHUNK * IN_WORD / 2], const u32 words[CHUNK]) {
    UNROLL
    for (i32 i = 0; i < CHUNK; i++) {
#if SUM_BYTES == 1
        totals[2 * i] += BYTES_WIDENED(words[i]);
        totals[2 * i + 1] += BYTES_WIDENED(words[i] >> 16);
#else
        totals[i] += words[i];
#endif
    }
}

FUNCTION u32 lesser(u32 a, u32 b) { return a < b ? a : b; }

FUNCTION u32 total_of(const LOCAL_POINTER u32 *totals, i32 pixel, i32 d) {
    return ((const LOCAL_POINTER u16 *)totals)[pixel * (2 * PITCH) + 2 * MARGIN + d];
}

KERNEL(winner_takes_all) {
    LOCAL u32 totals[PIXELS * PITCH];
    // The least key, sum and disparity, of each chunk of each pixel.
    LOCAL u32 found[PIXELS * CHUNKS];
#if SECOND
    LOCAL u32 second_found[LANES];
#endif
#if RIGHT
    // The least key so far of the right pixels that are not complete, by their column modulo RING.
    LOCAL u32 right_keys[RING];
#endif
    const i32 lane = LANE_X, y = GROUP_X, image = GROUP_Z, width = args.width, disparities = args.disparities;
    const i32 min_disparity = args.min_disparity;
    const u64 area = (u64)width * args.height, row = (u64)y * width;
    const GLOBAL u32 *sums_row = sums + ((u64)(PARTS * image) * area + row) * PART_WORDS;
    const u64 part = area * PART_WORDS;
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
    // Right pixels that no left pixel can correspond to.
    for (i32 x = lane; x < width; x += LANES) {
        if (x + min_disparity > width - 1 || x + min_disparity + disparities - 1 < 0) right[x] = INVALID;
    }
#endif

    // The margins, too: places outside the disparities of a pixel never win.
    for (i32 i = lane; i < PIXELS * PITCH; i += LANES) totals[i] = NONE;
    BARRIER();
#if SECOND
    const i32 pixel = lane % PIXELS, segment = lane / PIXELS;
#endif
    for (i32 start = 0; start < width; start += PIXELS) {
        const i32 count = MIN_I(PIXELS, width - start);
        for (i32 i = lane; i < PIXELS * CHUNKS; i += LANES) {
            const i32 at = i / CHUNKS, chunk = i % CHUNKS, d = chunk * (CHUNK * IN_WORD);
            const bool is_seen = at < count ? !IS_HOLE(start + at) : false;
            u32 two[CHUNK * IN_WORD / 2];
            UNROLL
            for (i32 j = 0; j < CHUNK * IN_WORD / 2; j++) two[j] = is_seen ? 0u : NONE;
            if (is_seen) {
                const GLOBAL u32 *from = sums_row + (u64)(u32)(start + at) * PART_WORDS;
                u32 words[PARTS][CHUNK];
                UNROLL
                for (i32 k = 0; k < PARTS; k++) {
                    load_chunk(words[k], from + k * part + chunk * CHUNK);
                }
                UNROLL
                for (i32 k = 0; k < PARTS; k++) add_chunk(two, words[k]);
            }
            u32 key = NONE;
            UNROLL
            for (i32 j = 0; j < CHUNK * IN_WORD / 2; j++) {
#if PARTIAL
                if (d + 2 * j >= disparities) two[j] |= 0xffffu;
                if (d + 2 * j + 1 >= disparities) two[j] |= 0xffff0000u;
#endif
                totals[at * PITCH + MARGIN + d / 2 + j] = two[j];
                key = lesser(key, lesser(two[j] << 16 | (u32)(2 * j), (two[j] & 0xffff0000u) | (u32)(2 * j + 1)));
            }
            found[i] = key + (u32)d;
        }
        BARRIER();

#if RIGHT
        // Left pixel start + p corresponds to right pixel start - min_disparity - a at disparity index p + a. A lane
        // compares RUN left pixels, two at a time, for the right pixels of an even a and of a + 1.
        for (i32 i = lane; i < (PADDED + PIXELS) / 2 * (PIXELS / RUN); i += LANES) {
            const i32 a = 2 * (i % ((PADDED + PIXELS) / 2)) - PIXELS, p = i / ((PADDED + PIXELS) / 2) * RUN;
            if (a + p < -RUN || a + p >= PADDED) continue;
            u32 keys[2] = {NONE, NONE};
            UNROLL
            for (i32 j = 0; j < RUN; j += 2) {
                const LOCAL_POINTER u32 *words = totals + (p + j) * PITCH + MARGIN + (a + p + j) / 2;
                const u32 here = words[0], next = words[PITCH], after = words[PITCH + 1];
                keys[0] = lesser(keys[0], lesser(here << 16 | (u32)j, (next & 0xffff0000u) | (u32)(j + 1)));
                keys[1] = lesser(keys[1], lesser((here & 0xffff0000u) | (u32)j, after << 16 | (u32)(j + 1)));
            }
            UNROLL
            for (i32 j = 0; j < 2; j++) {
                const i32 x = start - min_disparity - a - j;
                if (x >= 0 && x < width && keys[j] < 0xffff0000u) {
                    ATOMIC_MIN(&right_keys[x % RING], keys[j] + (u32)(a + j + p));
                }
            }
        }
#endif
#if SECOND
        // The least sum that is not beside the best.
        u32 best_key = NONE;
        for (i32 i = 0; i < CHUNKS; i++) best_key = lesser(best_key, found[pixel * CHUNKS + i]);
        u32 other = 0xffffu;
        if (pixel < count && segment < SEGMENTS) {
            const i32 taken = (i32)(best_key & 0xffffu);
            for (i32 d = segment; d < disparities; d += SEGMENTS) {
                if (d < taken - 1 || d > taken + 1) other = lesser(other, total_of(totals, pixel, d));
            }
        }
        second_found[lane] = other;
        BARRIER();
#endif
        if (lane < count) {
            u32 key = NONE;
            for (i32 i = 0; i < CHUNKS; i++) key = lesser(key, found[lane * CHUNKS + i]);
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
            f32 result = INVALID;
            if (is_sure) {
                f32 offset = 0.0f;
                if (best > 0 && best + 1 < disparities) {
                    offset = subpixel_offset((i32)total_of(totals, lane, best - 1), value, (i32)total_of(totals, lane, best + 1));
                }
                result = (f32)(min_disparity + best) + offset;
            }
            disparity[x] = result;
        }
        BARRIER();
#if RIGHT
        // Right pixels that no later left pixel can correspond to are complete.
        const i32 from = start - min_disparity - (disparities - 1);
        const i32 end = start + count - 1 - min_disparity - (start + count < width ? disparities - 1 : 0);
        for (i32 x = MAX_I(from, 0) + lane; x <= MIN_I(end, width - 1); x += LANES) {
            const u32 key = right_keys[x % RING];
            f32 value = key == NONE ? INVALID : (f32)(min_disparity + (i32)(key & 0xffffu));
#if MASKED
            if (right_seen[x] == 0u) value = INVALID;
#endif
            right[x] = value;
            right_keys[x % RING] = NONE;
        }
#endif
    }
}
