// The costs of a volume as the aggregation reads them, and the invalidation of disparities of unknown cost: mod.rs.

// The bit that marks an unknown cost.
#define UNKNOWN 0x8000u

// A group takes rows, a lane every LANES-th word of a row: the costs of a pixel at two disparities.
KERNEL(whole_costs) {
    const i32 width = args.width, count = args.disparities;
    for (i32 y = GROUP_X; y < args.plane.height; y += GROUPS_X) {
        const GLOBAL PIXEL *costs_row = costs + (u64)y * args.plane.pitch;
        GLOBAL u32 *out = (GLOBAL u32 *)whole + (u64)y * width * (PADDED / 2);
        for (i32 i = LANE_X; i < width * (PADDED / 2); i += LANES) {
            const i32 x = i / (PADDED / 2), first = i % (PADDED / 2) * 2;
            const bool is_hole = args.left_plane.row > 0 && left_mask[(u64)y * args.left_plane.pitch + x] == 0;
            u32 two[2];
            UNROLL
            for (i32 k = 0; k < 2; k++) {
                const i32 d = MIN_I(first + k, count - 1);
                const f32 cost = (f32)costs_row[(i64)x * count + d];
                two[k] = args.greatest;
                if (IS_FINITE(cost)) {
                    const u32 scaled = (u32)ROUND_EVEN((cost - args.offset) * args.scale);
                    two[k] = scaled < args.greatest ? scaled : args.greatest;
                }
                if (args.right_plane.row > 0) {
                    // The nearest column, as for costs that are computed.
                    const i32 other = MIN_I(MAX_I(x - (args.min_disparity + d), 0), width - 1);
                    if (right_mask[(u64)y * args.right_plane.pitch + other] == 0) two[k] = args.greatest;
                }
                // Paths cross pixels without data unchanged.
                if (is_hole) two[k] = 0u;
                if (!IS_FINITE(cost)) two[k] |= UNKNOWN;
            }
            out[i] = two[0] | two[1] << 16;
        }
    }
}

FUNCTION bool is_known(const GLOBAL u16 *costs, i32 d, i32 min_disparity, i32 disparities) {
    return (costs[MIN_I(MAX_I(d - min_disparity, 0), disparities - 1)] & UNKNOWN) == 0u;
}

KERNEL(withdraw) {
    const i32 x = PIXEL_X, y = PIXEL_Y, width = args.plane.row, least = args.min_disparity;
    if (x >= width || y >= args.plane.height) return;
    const GLOBAL u16 *row = (const GLOBAL u16 *)whole + (u64)y * width * PADDED;
    const u64 at = (u64)y * args.plane.pitch + x;
    if (disparity[at] != INVALID
        && !is_known(row + (u64)x * PADDED, (i32)ROUND_EVEN(disparity[at]), least, args.disparities)) {
        disparity[at] = INVALID;
        if (args.confidence_plane.row > 0) confidence[(u64)y * args.confidence_plane.pitch + x] = 0.0f;
    }
    if (args.right_plane.row > 0) {
        const u64 at_right = (u64)y * args.right_plane.pitch + x;
        const f32 d = right[at_right];
        if (d != INVALID) {
            const i32 other = x + (i32)d;
            if (other < 0 || other >= width
                || !is_known(row + (u64)(u32)other * PADDED, (i32)d, least, args.disparities)) {
                right[at_right] = INVALID;
            }
        }
    }
}
