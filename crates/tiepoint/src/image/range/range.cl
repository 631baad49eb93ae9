// Counts for percentiles, and the stretch to them: the arithmetic of spread.rs and mod.rs. A group takes rows, a lane
// every LANES-th pixel of a row.

#if COUNTS
// Counts the pixels that are not finite, masked or not, and of all other unmasked pixels the upper halves of the keys.
KERNEL(count_upper) {
    for (i32 y = GROUP_X; y < args.plane.height; y += GROUPS_X) {
        for (i32 x = LANE_X; x < args.plane.row; x += LANES) {
            f32 v = (f32)pixels[(u64)y * args.plane.pitch + x];
            if (!IS_FINITE(v)) {
                ATOMIC_ADD(holes, 1u);
            } else if (args.mask_plane.row == 0 || mask[(u64)y * args.mask_plane.pitch + x] != 0) {
                ATOMIC_ADD(&upper[key_of(v) >> 16], 1u);
            }
        }
    }
}

// Counts the lower halves of the keys that have one of four upper halves.
KERNEL(count_lower) {
    for (i32 y = GROUP_X; y < args.plane.height; y += GROUPS_X) {
        for (i32 x = LANE_X; x < args.plane.row; x += LANES) {
            f32 v = (f32)pixels[(u64)y * args.plane.pitch + x];
            if (IS_FINITE(v) && (args.mask_plane.row == 0 || mask[(u64)y * args.mask_plane.pitch + x] != 0)) {
                u32 key = key_of(v);
                for (i32 i = 0; i < 4; i++) {
                    if (key >> 16 == args.upper[i]) ATOMIC_ADD(&lower[(u32)i << 16 | (key & 0xffffu)], 1u);
                }
            }
        }
    }
}
#else
KERNEL(stretch) {
    for (i32 y = GROUP_X; y < args.plane.height; y += GROUPS_X) {
        for (i32 x = LANE_X; x < args.plane.row; x += LANES) {
            f32 v = ((f32)pixels[(u64)y * args.plane.pitch + x] - args.low) * args.scale;
            v = v < 0.0f ? 0.0f : (v > 1.0f ? 1.0f : v);
#if INTEGER
            v = ROUND_EVEN(v * WHITE);
#endif
            to[(u64)y * args.to_plane.pitch + x] = (TO)v;
        }
    }
}
#endif
