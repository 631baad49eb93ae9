// The cost of a left pixel and a right one; with masks the last plane tells where a view holds something.
FUNCTION u32 pixel_cost(const u32 left[PLANES], const u32 right[PLANES], u32 greatest, const GLOBAL u8 *table) {
#if MASKED
    if (left[WORDS] == 0u) return 0u;
    if (right[WORDS] == 0u) return greatest;
#endif
    return cost(left, right, table);
}
