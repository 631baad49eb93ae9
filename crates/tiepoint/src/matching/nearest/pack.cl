// Packs descriptors into the rows of regions.h.
//
// Also from Rust: SHIFT, bits below the squared length in `norms`; PANELS, 1 for rows interleaved by BLOCK, 0 for
// one row after the other; EXCHANGED, 1 for pieces of 16 bytes in the order of nearest_wgmma.cu. With SHIFT, for tensor
// cores, values are packed less 128, and squared lengths are those of the packed values less BIAS.

#if SHIFT
#define BIAS (DIMENSION << 14)

// A word with 128 subtracted from each byte that belongs to the descriptor.
FUNCTION u32 centred(u32 bytes, u32 word) {
    u32 first = 4 * word, missing = first + 4 > DIMENSION ? at_most(first + 4 - DIMENSION, 4) : 0;
    return missing == 4 ? 0 : bytes ^ 0x80808080u >> 8 * missing;
}
#endif

// Packs descriptors in the order `order`, with one lane for each row. Rows without a feature, in the last block of a
// region, are 0.
KERNEL(pack_rows) {
    u32 block = (u32)GROUP_X, lane = (u32)LANE_X, row = block * BLOCK + lane;
    u32 dark = dark_start(regions), is_dark = row >= dark, place = is_dark ? row - dark : row;
    u32 features = regions[is_dark];
    if (place >= divided(features, BLOCK) * BLOCK) return;
    i32 exists = place < features;
    const GLOBAL VALUE *from = descriptors + (u64)(exists ? order[row] : 0) * DIMENSION;
    Distance length = 0;
    for (u32 word = 0; word < WORDS; word += 4) {
        u32x4 words = U32X4(0, 0, 0, 0);
        if (exists) words = words_of(from, word);
        length = MULTIPLY_ADD(words.x, words.x, length);
        length = MULTIPLY_ADD(words.y, words.y, length);
        length = MULTIPLY_ADD(words.z, words.z, length);
        length = MULTIPLY_ADD(words.w, words.w, length);
#if SHIFT
        // |b - 128|^2 - BIAS = |b|^2 - 256 times the sum of b.
        length -= 256 * (i32)DOT4(words.x, 0x01010101u, 0u) + 256 * (i32)DOT4(words.y, 0x01010101u, 0u);
        length -= 256 * (i32)DOT4(words.z, 0x01010101u, 0u) + 256 * (i32)DOT4(words.w, 0x01010101u, 0u);
        if (exists) {
            words.x = centred(words.x, word);
            words.y = centred(words.y, word + 1);
            words.z = centred(words.z, word + 2);
            words.w = centred(words.w, word + 3);
        }
#endif
#if PANELS
        GLOBAL u32 *to = packed + ((u64)block * WORDS + word) * BLOCK + lane;
        to[0] = words.x;
        to[BLOCK] = words.y;
        to[2 * BLOCK] = words.z;
        to[3 * BLOCK] = words.w;
#else
        u32 place = EXCHANGED ? word ^ (row & 7) << 2 : word;
        ((GLOBAL u32x4 *)packed)[((u64)row * WORDS + place) / 4] = words;
#endif
    }
#if SHIFT
    // The squared length and, below it, a number that distinguishes a lane's targets; the greatest key for rows without
    // a feature: keys.h.
    u32 number = ((place >> 3) * 2 + (place & 1)) & ((1 << SHIFT) - 1);
    norms[row] = exists ? (u32)length << SHIFT | number : 0x7fffffffu;
#else
    norms[row] = TO_WORD(length);
#endif
}
