// The cost volume: the cost of every left pixel at every disparity, a byte each.
//
// A lane computes EACH disparities of SEGMENT left pixels beside each other; the LANES lanes of a pixel lie side by side. From
// one pixel to the next the right pixels of a lane move up by one disparity, so that one of them is new.
//
// The bytes of a lane lie as path.h spreads them: word i holds disparities 2i, 2i + PAIRS, 2i + 1 and 2i + 1 + PAIRS of the
// lane. What lies beyond the last disparity is no cost.

#define PAIRS (EACH / 2)
#define COST_WORDS (EACH / 4)

FUNCTION i32 held(i32 x, i32 width) { return MIN_I(MAX_I(x, 0), width - 1); }

KERNEL(cost_volume) {
    const i32 width = args.width, height = args.height, item = GROUP_X * GROUP_LANES + LANE_X;
    const i32 lane = item % LANES, segment = item / LANES % args.across, of_all = item / LANES / args.across;
    if (of_all >= args.images * height) return;
    const i32 image = of_all / height, y = of_all % height, start = segment * SEGMENT, end = MIN_I(start + SEGMENT, width);
    const u64 area = (u64)width * height, row_start = (u64)y * width;
    const GLOBAL u32 *left_row = left + (u64)image * PLANES * area + row_start;
    const GLOBAL u32 *right_row = right + (u64)image * PLANES * area + row_start;
    GLOBAL u32 *to = costs + ((u64)image * area + row_start) * (PADDED / 4) + lane * COST_WORDS;

    // The right pixels of a lane's disparities. In front is room for those that come to its first one in PHASES columns.
    const i32 first = args.min_disparity + lane * EACH;
    u32 window[PHASES + EACH][PLANES];
    UNROLL
    for (i32 i = 0; i < EACH; i++) {
        UNROLL
        for (i32 w = 0; w < PLANES; w++) window[i][w] = (right_row + w * area)[(u32)held(start - 1 - first - i, width)];
    }
    for (i32 turn = start; turn < end; turn += PHASES) {
        u32 own[PHASES][PLANES];
        UNROLL
        for (i32 w = 0; w < PLANES; w++) {
            UNROLL
            for (i32 i = EACH - 1; i >= 0; i--) window[PHASES + i][w] = window[i][w];
            UNROLL
            for (i32 phase = 0; phase < PHASES; phase++) {
                window[PHASES - 1 - phase][w] = (right_row + w * area)[(u32)held(turn + phase - first, width)];
                own[phase][w] = (left_row + w * area)[(u32)MIN_I(turn + phase, width - 1)];
            }
        }
        UNROLL
        for (i32 phase = 0; phase < PHASES; phase++) {
            u32 words[COST_WORDS];
            UNROLL
            for (i32 i = 0; i < COST_WORDS; i++) {
                const i32 at = PHASES - 1 - phase + 2 * i;
                words[i] = pixel_cost(own[phase], window[at], args.greatest, table)
                    + pixel_cost(own[phase], window[at + PAIRS], args.greatest, table) * 0x100u
                    + pixel_cost(own[phase], window[at + 1], args.greatest, table) * 0x10000u
                    + pixel_cost(own[phase], window[at + 1 + PAIRS], args.greatest, table) * 0x1000000u;
            }
            if (turn + phase < end) {
                GLOBAL u32 *out = to + (u64)(u32)(turn + phase) * (PADDED / 4);
#if COST_WORDS % 4 == 0
                UNROLL
                for (i32 i = 0; i < COST_WORDS; i += 4) {
                    *(GLOBAL u32x4 *)(out + i) = U32X4(words[i], words[i + 1], words[i + 2], words[i + 3]);
                }
#elif COST_WORDS % 2 == 0
                UNROLL
                for (i32 i = 0; i < COST_WORDS; i += 2) *(GLOBAL u64 *)(out + i) = (u64)words[i + 1] << 32 | words[i];
#else
                out[0] = words[0];
#endif
            }
        }
    }
}
