// The absolute difference of 8-bit values, truncated at LIMIT: absolute_difference.rs.

FUNCTION void descriptor_of(u32 descriptor[WORDS], const View *view, i32 x, i32 y) {
    descriptor[0] = compared_at(view, x, y, 1, 0);
}

FUNCTION u32 cost(const u32 left[WORDS], const u32 right[WORDS], const GLOBAL u8 *table) {
    const u32 difference = left[0] > right[0] ? left[0] - right[0] : right[0] - left[0];
    return difference < LIMIT ? difference : LIMIT;
}
