// f32s from one row of a level to the next.
FUNCTION i32 pitch_of(i32 width) { return (width + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }
