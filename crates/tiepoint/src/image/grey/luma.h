// Luma of mod.rs: of whole numbers, which are at most 65535, and of floats.

FUNCTION u32 luma_level(u32 red, u32 green, u32 blue) { return (2126u * red + 7152u * green + 722u * blue + 5000u) / 10000u; }

FUNCTION f32 luma_float(f32 red, f32 green, f32 blue) { return FMA(BLUE, blue, FMA(GREEN, green, RED * red)); }
