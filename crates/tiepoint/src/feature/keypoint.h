// A keypoint in a device's memory; keypoint.rs reads and writes the same words.
typedef struct {
    f32 x, y, scale, angle, response;
    // octave + 128 in bits 8 to 15, layer in bits 0 to 7: ascending as the last keys of the order.
    u32 octave_layer;
    // +1 or -1.
    i32 sign;
    // For the detector's own use.
    u32 mark;
} Keypoint;

// A float as an integer that sorts as `total_cmp` does.
FUNCTION u32 sortable(f32 v) {
    u32 bits = BITS_OF(v);
    return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}

FUNCTION i32 compare(u32 a, u32 b) { return a < b ? -1 : (a > b ? 1 : 0); }

// The order of two numbers, or if they are equal, that by later keys.
FUNCTION i32 compare_f32(f32 a, f32 b, i32 later) {
    i32 c = compare(sortable(a), sortable(b));
    return c != 0 ? c : later;
}

// Negative when `a` comes before `b` in the total order of keypoints: response descending, then y, x, scale, angle,
// octave and layer ascending. From the last key to the first, so that no read waits for a comparison: keypoints with
// several directions agree in all keys but the last ones.
FUNCTION i32 keypoint_order(const GLOBAL Keypoint *a, const GLOBAL Keypoint *b) {
    i32 c = compare_f32(a->angle, b->angle, compare(a->octave_layer, b->octave_layer));
    c = compare_f32(a->x, b->x, compare_f32(a->scale, b->scale, c));
    return compare_f32(b->response, a->response, compare_f32(a->y, b->y, c));
}

// Whether the mask is not 0 at the point's pixel.
FUNCTION i32 unmasked(const GLOBAL u8 *mask, i32 pitch, i32 width, i32 height, const Keypoint *point) {
    i32 x = MIN_I((i32)MAX_F(ROUND_EVEN(point->x), 0.0f), width - 1);
    i32 y = MIN_I((i32)MAX_F(ROUND_EVEN(point->y), 0.0f), height - 1);
    return mask[(u64)y * pitch + x] != 0;
}
