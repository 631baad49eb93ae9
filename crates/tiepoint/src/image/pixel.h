// The pixel of this program: PIXEL is u8, u16 or f32, WHITE its value of white. The same bits as `Pixel` in pixel.rs.

#if PIXEL_IS_FLOAT
// From 0 (black) to 1 (white); NaN fails the comparison and becomes 0.
FUNCTION f32 pixel_unit(PIXEL v) { return v > 0.0f ? MIN_F(v, 1.0f) : 0.0f; }
// On an integer scale, for exact sums.
FUNCTION u32 pixel_level(PIXEL v) { return (u32)ROUND_EVEN(pixel_unit(v) * 65535.0f); }
// The nearest value of this type.
FUNCTION PIXEL pixel_from(f32 v) { return v; }
#else
FUNCTION f32 pixel_unit(PIXEL v) { return (f32)v * (1.0f / WHITE); }
FUNCTION u32 pixel_level(PIXEL v) { return (u32)v; }
// Ties to even; NaN fails the comparison and becomes 0.
FUNCTION PIXEL pixel_from(f32 v) { return (PIXEL)(v > 0.0f ? ROUND_EVEN(MIN_F(v, WHITE)) : 0.0f); }
#endif
