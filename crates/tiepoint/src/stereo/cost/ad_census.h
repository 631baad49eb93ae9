// Census and colour in one cost: ad_census.rs. A descriptor is the census in CENSUS_BITS bits and above it the grey
// value or, with CHANNELS 3, the colours in a second word.

#define CENSUS_MASK ((1u << CENSUS_BITS) - 1u)

FUNCTION void descriptor_of(u32 descriptor[WORDS], const View *view, i32 x, i32 y) {
    descriptor[0] = 0u;
    census(descriptor, view);
#if CHANNELS == 1
    descriptor[0] |= compared_at(view, x, y, 1, 0) << CENSUS_BITS;
#else
    descriptor[1] = compared_at(view, x, y, 3, 0) | compared_at(view, x, y, 3, 1) << 8 | compared_at(view, x, y, 3, 2) << 16;
#endif
}

FUNCTION u32 apart(u32 a, u32 b) { return a > b ? a - b : b - a; }

FUNCTION u32 cost(const u32 left[WORDS], const u32 right[WORDS], const GLOBAL u8 *table) {
    const u32 differing = POPCOUNT((left[0] ^ right[0]) & CENSUS_MASK);
#if CHANNELS == 1
    u32 difference = 3u * apart(left[0] >> CENSUS_BITS, right[0] >> CENSUS_BITS);
#else
    u32 difference = apart(left[1] & 255u, right[1] & 255u) + apart(left[1] >> 8 & 255u, right[1] >> 8 & 255u)
        + apart(left[1] >> 16, right[1] >> 16);
#endif
    difference = difference < DIFFERENCE ? difference : DIFFERENCE;
    const u32 sum = differing + (difference >> SHIFT);
    return sum < LIMIT ? sum : LIMIT;
}
