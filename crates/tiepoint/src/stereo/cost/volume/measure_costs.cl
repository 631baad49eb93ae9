// The least and the greatest finite cost, as keys: the greatest of ~key and of key. A group takes rows, a lane every
// LANES-th cost of a row, BATCH at a time.

#define BATCH 4

KERNEL(measure_costs) {
    LOCAL u32 of_group[2];
    if (LANE_X < 2) of_group[LANE_X] = 0u;
    BARRIER();
    const i32 row = args.plane.row;
    u32 most[2] = {0u, 0u};
    for (i32 y = GROUP_X; y < args.plane.height; y += GROUPS_X) {
        const GLOBAL PIXEL *costs_row = costs + (u64)y * args.plane.pitch;
        for (i32 i = LANE_X; i < row; i += BATCH * LANES) {
            PIXEL batch[BATCH];
            UNROLL
            for (i32 k = 0; k < BATCH; k++) batch[k] = costs_row[MIN_I(i + k * LANES, row - 1)];
            UNROLL
            for (i32 k = 0; k < BATCH; k++) {
                const f32 cost = (f32)batch[k];
                if (!IS_FINITE(cost)) continue;
                const u32 key = key_of(cost);
                most[0] = ~key > most[0] ? ~key : most[0];
                most[1] = key > most[1] ? key : most[1];
#if PIXEL_IS_FLOAT
                // All lanes that find a known cost of the pixel write the same value.
                const i32 x = MIN_I(i + k * LANES, row - 1) / args.disparities;
                const u8 has_data = args.given_plane.row == 0 ? 1 : given[(u64)y * args.given_plane.pitch + x];
                known[(u64)y * args.known_plane.pitch + x] = has_data;
#endif
            }
        }
    }
    ATOMIC_MAX(&of_group[0], most[0]);
    ATOMIC_MAX(&of_group[1], most[1]);
    BARRIER();
    if (LANE_X < 2) ATOMIC_MAX(&found[LANE_X], of_group[LANE_X]);
}
