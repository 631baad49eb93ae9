// The census transform of a pixel, and the number of bits in which two transforms differ: census.rs.

FUNCTION void descriptor_of(u32 descriptor[WORDS], const View *view, i32 x, i32 y) {
    UNROLL
    for (i32 i = 0; i < WORDS; i++) descriptor[i] = 0u;
    census(descriptor, view);
}

FUNCTION u32 cost(const u32 left[WORDS], const u32 right[WORDS], const GLOBAL u8 *table) {
    u32 differing = 0u;
    UNROLL
    for (i32 i = 0; i < WORDS; i++) differing += POPCOUNT(left[i] ^ right[i]);
    return differing;
}
