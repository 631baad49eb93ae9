// Code shared by both guided searches.

// The squared distance of two descriptors, by the contract of product/mod.rs.
FUNCTION Distance distance_of(const GLOBAL VALUE *a, const GLOBAL VALUE *b) {
    Distance length_a = 0, length_b = 0, product = 0;
    for (u32 word = 0; word < WORDS; word++) {
        u32 p = word_of(a, word), q = word_of(b, word);
        length_a = MULTIPLY_ADD(p, p, length_a);
        length_b = MULTIPLY_ADD(q, q, length_b);
        product = MULTIPLY_ADD(p, q, product);
    }
    return SQUARED(length_a + length_b, product);
}
