// The cost of two 8-bit values from the table: mod.rs.

FUNCTION void descriptor_of(u32 descriptor[WORDS], const View *view, i32 x, i32 y) {
    descriptor[0] = compared_at(view, x, y, 1, 0);
}

FUNCTION u32 cost(const u32 left[WORDS], const u32 right[WORDS], const GLOBAL u8 *table) {
    return table[left[0] * VALUES + right[0]];
}
