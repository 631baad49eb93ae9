// The input of a step of the scale space. Bits as mod.rs; the order of a sum is that of filter/gauss/rows.rs.
// BASE: the image from 0 to 1, doubled if asked for; otherwise the level below.
#if BASE
typedef struct {
    const GLOBAL PIXEL *pixels;
    i32 pitch, width, height;
} Input;

FUNCTION f32 input_at(Input input, i32 x, i32 y) { return pixel_unit(input.pixels[(u64)y * input.pitch + x]); }

#define SOURCE Input input
#if DOUBLED
// Between two pixels, the nearer first.
FUNCTION f32 between(f32 nearer, f32 farther) {
#if HALF_PIXELS
    return nearer * 0.75f + farther * 0.25f;
#else
    return (nearer + farther) * 0.5f;
#endif
}

// Pixel i of the doubled image lies between i / 2 and this one of `n`.
FUNCTION i32 farther_of(i32 i, i32 n) {
#if HALF_PIXELS
    return i % 2 == 0 ? MAX_I(i / 2 - 1, 0) : MIN_I(i / 2 + 1, n - 1);
#else
    return MIN_I((i + 1) / 2, n - 1);
#endif
}

FUNCTION f32 source_at(Input input, i32 y, i32 x, i32 far_x) {
    i32 far_y = farther_of(y, input.height);
    f32 nearer = between(input_at(input, x, y / 2), input_at(input, x, far_y));
    f32 farther = between(input_at(input, far_x, y / 2), input_at(input, far_x, far_y));
    return between(nearer, farther);
}

// ROWS rows from number `y`, whose parity is known when this is compiled: a row of the input is read once.
FUNCTION void source_rows(f32 *out, Input input, i32 y, const i32 parity, i32 x, i32 far_x) {
    f32 a[ROWS / 2 + 2], b[ROWS / 2 + 2];
    i32 first = (y - parity) / 2 - 1;
    UNROLL
    for (i32 i = 0; i < ROWS / 2 + 2; i++) {
        a[i] = input_at(input, x, first + i);
        b[i] = input_at(input, far_x, first + i);
    }
    UNROLL
    for (i32 i = 0; i < ROWS; i++) {
        const i32 at = (parity + i) / 2 + 1;
        const i32 far = (parity + i) % 2 != 0 ? at + 1 : at - HALF_PIXELS;
        out[i] = between(between(a[at], a[far]), between(b[at], b[far]));
    }
}

#define SOURCE_COLUMN(column) i32 near_x = (column) / 2, far_x = farther_of(column, input.width)
#define SOURCE_AT(y, column) source_at(input, y, near_x, far_x)
#define SOURCE_HOLDS(y) ((y) >= 2 && (y) / 2 + ROWS / 2 + 1 <= input.height)
#define SOURCE_ROWS(out, y, column) source_rows(out, input, y, RADIUS % 2, near_x, far_x)
#else
FUNCTION void source_rows(f32 *out, Input input, i32 y, i32 x) {
    UNROLL
    for (i32 i = 0; i < ROWS; i++) out[i] = input_at(input, x, y + i);
}

#define SOURCE_COLUMN(column)
#define SOURCE_AT(y, column) input_at(input, column, y)
#define SOURCE_HOLDS(y) ((y) >= 0 && (y) + ROWS <= height)
#define SOURCE_ROWS(out, y, column) source_rows(out, input, y, column)
#endif
#else
FUNCTION void source_rows(f32 *out, const GLOBAL f32 *from, i32 pitch) {
    UNROLL
    for (i32 i = 0; i < ROWS; i++) out[i] = from[(i64)i * pitch];
}

#define SOURCE const GLOBAL f32 *RESTRICT from
#define SOURCE_COLUMN(column)
#define SOURCE_AT(y, column) from[(u64)(y) * pitch + (column)]
#define SOURCE_HOLDS(y) ((y) >= 0 && (y) + ROWS <= height)
#define SOURCE_ROWS(out, y, column) source_rows(out, from + ((u64)(y) * pitch + (column)), pitch)
#endif
