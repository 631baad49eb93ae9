// Changes of reasons and confidence by refinement.

// Sets the reason of pixels that are invalid and have none yet: one where a flag is set, another where it is not.
KERNEL(note) {
    const Plane plane = args.plane, flags_plane = args.flags_plane, reasons_plane = args.reasons_plane;
    const i32 x = PIXEL_X, y = PIXEL_Y;
    if (x >= plane.row || y >= plane.height) return;
    const u64 at = reasons_plane.step * (u64)GROUP_Z + (u64)y * reasons_plane.pitch + x;
    if (reasons[at] != 0 || ABS(disparity[plane.step * (u64)GROUP_Z + (u64)y * plane.pitch + x]) < INVALID) return;
    const u64 flag = flags_plane.step * (u64)GROUP_Z + (u64)y * flags_plane.pitch + x;
    const bool is_set = flags_plane.row == 0 || flags[flag] != 0;
    reasons[at] = (u8)(is_set ? args.where_set : args.elsewhere);
}

// Sets confidence to 0 where refinement left no disparity.

KERNEL(drop_confidence) {
    const Plane plane = args.plane;
    const i32 x = PIXEL_X, y = PIXEL_Y;
    if (x >= plane.row || y >= plane.height) return;
    const u64 at = plane.step * (u64)GROUP_Z + (u64)y * plane.pitch + x;
    if (!(ABS(disparity[at]) < INVALID)) confidence[at] = 0.0f;
}
