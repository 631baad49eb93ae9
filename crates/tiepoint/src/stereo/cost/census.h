// The census of a pixel, and in how many bits two differ: census.rs. COMPARISONS is COMPARE(bit, ax, ay, bx, by) for
// every pair of pixels.

#define COMPARE(bit, ax, ay, bx, by) \
    descriptor[(bit) / 32] |= (u32)(grey_at(view, x + (ax), y + (ay)) < grey_at(view, x + (bx), y + (by))) << ((bit) % 32);

FUNCTION void descriptor_of(u32 descriptor[WORDS], const View *view, i32 x, i32 y) {
    UNROLL
    for (i32 i = 0; i < WORDS; i++) descriptor[i] = 0u;
    COMPARISONS
}

FUNCTION u32 cost(const u32 left[WORDS], const u32 right[WORDS], const GLOBAL u8 *table) {
    u32 differing = 0u;
    UNROLL
    for (i32 i = 0; i < WORDS; i++) differing += POPCOUNT(left[i] ^ right[i]);
    return differing;
}
