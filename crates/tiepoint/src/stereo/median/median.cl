// The median of the valid pixels of a window: mod.rs. The middle is found by elimination, as there.

// The next pixel of a window; half of the invalid pixels, rounded up, become −∞, the others +∞.
FUNCTION f32 next_value(const GLOBAL f32 *map, i32 pitch, i32 width, i32 height, i32 x, i32 y, i32 *below) {
    const f32 v = x < 0 || x >= width || y < 0 || y >= height ? INVALID : map[(u64)y * pitch + x];
    if (ABS(v) < INVALID) return v + 0.0f;
    *below = !*below;
    return *below ? -INVALID : INVALID;
}

#define ORDER(i, j) { \
    const f32 least = MIN_F(kept[i], kept[j]), most = MAX_F(kept[i], kept[j]); \
    kept[i] = least; \
    kept[j] = most; \
}

// Brings the least of the first `count` values to the front and the greatest to the end.
FUNCTION void extremes(f32 *kept, const i32 count) {
    UNROLL
    for (i32 i = 0; i < count / 2; i++) ORDER(i, count - 1 - i)
    UNROLL
    for (i32 i = 1; i < (count + 1) / 2; i++) ORDER(0, i)
    UNROLL
    for (i32 i = count / 2; i < count - 1; i++) ORDER(i, count - 1)
}

KERNEL(median) {
    const Plane plane = args.plane;
    const i32 x = PIXEL_X, y = PIXEL_Y;
    if (x >= plane.row || y >= plane.height) return;
    const GLOBAL f32 *map = from + plane.step * (u64)GROUP_Z;
    GLOBAL f32 *out = to + plane.step * (u64)GROUP_Z;
    const f32 centre = map[(u64)y * plane.pitch + x];
    f32 result = INVALID;
    if (ABS(centre) < INVALID) {
        i32 below = 0;
        f32 kept[KEPT];
        UNROLL
        for (i32 i = 0; i < KEPT; i++) {
            kept[i] = next_value(map, plane.pitch, plane.row, plane.height, x + i % SIDE - SIDE / 2,
                                 y + i / SIDE - SIDE / 2, &below);
        }
        UNROLL
        for (i32 i = KEPT; i < SIDE * SIDE; i++) {
            extremes(kept, KEPT - (i - KEPT));
            kept[0] = next_value(map, plane.pitch, plane.row, plane.height, x + i % SIDE - SIDE / 2,
                                 y + i / SIDE - SIDE / 2, &below);
        }
        extremes(kept, 3);
        result = kept[1];
    }
    out[(u64)y * plane.pitch + x] = result;
}
