// Descriptors of the pixels of a view, plane by plane; with MASKED a last plane is 1 where the view has data, else 0.

KERNEL(describe) {
    const Plane grey_plane = args.grey_plane, compared_plane = args.compared_plane;
    const i32 x = PIXEL_X, y = PIXEL_Y;
    const i32 width = grey_plane.row, height = grey_plane.height;
    if (x >= width || y >= height) return;
    const u64 area = (u64)width * height;
    GLOBAL u32 *out = words + (u64)GROUP_Z * PLANES * area + (u64)y * width + x;
#if WORDS > 0
    View view;
    look_around(&view, grey + grey_plane.step * (u64)GROUP_Z, grey_plane.pitch, width, height, x, y);
    view.rounding = (PIXEL)args.rounding;
    view.compared = compared + compared_plane.step * (u64)GROUP_Z;
    view.compared_pitch = compared_plane.pitch;
    u32 descriptor[WORDS];
    descriptor_of(descriptor, &view, x, y);
    for (i32 i = 0; i < WORDS; i++) out[i * area] = descriptor[i];
#endif
#if MASKED
    const Plane mask_plane = args.mask_plane;
    const u64 at = mask_plane.step * (u64)GROUP_Z + (u64)y * mask_plane.pitch + x;
    out[WORDS * area] = mask_plane.row == 0 || mask[at] != 0 ? 1u : 0u;
#endif
}
