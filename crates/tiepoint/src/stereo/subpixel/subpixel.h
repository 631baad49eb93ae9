// The offset of the least sum from the whole disparity: mod.rs.
FUNCTION f32 subpixel_offset(i32 below, i32 at, i32 above) {
#if SUBPIXEL == PARABOLA
    const i32 twice = below - 2 * at + above;
#elif SUBPIXEL == EQUIANGULAR
    const i32 twice = (below > above ? below : above) - at;
#else
    const i32 twice = 0;
#endif
    return twice == 0 ? 0.0f : (f32)(below - above) / (f32)(2 * twice);
}
