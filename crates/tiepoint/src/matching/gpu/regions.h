// Code shared by every search for nearest neighbours: which rows are compared with which, by which group, and how the
// results of the groups are merged.
//
// Each side is packed in its own rows: first the bright features, then, from the next multiple of BLOCK, the dark ones,
// so that a search goes through one run of rows. These are the four regions: A bright, A dark, B bright, B dark;
// `regions_a` and `regions_b` hold their counts. A group compares BLOCK rows of one region (queries) with some tiles of
// its counterpart (targets). The first `cut.queries` regions have queries: all four, or those of A alone. The results
// are merged at the end by distance and index, so that they do not depend on the division into groups.
//
// From Rust: BLOCK; TILE, the targets that a group takes at a time; FLOATS, 1 for f32; and, for kernels that read
// descriptors, their type VALUE, DIMENSION, and WORDS of a packed row.

#if FLOATS
typedef f32 Distance;
#define FAR FLOAT_OF(0x7f800000u)
#define FROM_WORD(word) FLOAT_OF(word)
#define TO_WORD(distance) BITS_OF(distance)
#define MULTIPLY_ADD(a, b, sum) FMA(FLOAT_OF(a), FLOAT_OF(b), sum)
// Squared distance from the sum of the squared lengths and the product, as in the contract (product/mod.rs).
#define SQUARED(lengths, product) FMA(-2.0f, product, lengths)
#else
typedef i32 Distance;
#define FAR 0x7fffffff
#define FROM_WORD(word) ((i32)(word))
#define TO_WORD(distance) ((u32)(distance))
#define MULTIPLY_ADD(a, b, sum) ((i32)DOT4(a, b, (u32)(sum)))
#define SQUARED(lengths, product) ((lengths) - 2 * (product))
#endif
#define NONE 0xffffffffu
#define NO_NUMBER FLOAT_OF(0x7fc00000u)

// The nearest so far and the distance of the second; `Best` of nearest/mod.rs.
typedef struct {
    Distance first, second;
    u32 index;
} Best;

FUNCTION Best best_none(void) {
    Best best;
    best.first = FAR;
    best.second = FAR;
    best.index = NONE;
    return best;
}

// The best of two results from disjoint sets of neighbours.
FUNCTION Best best_of(Best a, Best b) {
    i32 b_first = b.first < a.first || (b.first == a.first && b.index < a.index);
    Best near = b_first ? b : a, far = b_first ? a : b;
    near.second = far.first < near.second ? far.first : near.second;
    return near;
}

FUNCTION Best best_load(const GLOBAL u32 *words) {
    Best best;
    best.first = FROM_WORD(words[0]);
    best.second = FROM_WORD(words[1]);
    best.index = words[2];
    return best;
}

FUNCTION void best_store(GLOBAL u32 *words, Best best) {
    words[0] = TO_WORD(best.first);
    words[1] = TO_WORD(best.second);
    words[2] = best.index;
}

FUNCTION u32 at_most(u32 n, u32 most) { return n < most ? n : most; }

FUNCTION u32 divided(u32 n, u32 by) { return (n + by - 1) / by; }

// The first row of the dark features of a side.
FUNCTION u32 dark_start(const GLOBAL u32 *regions) { return divided(regions[0], BLOCK) * BLOCK; }

// The counts of the two regions of the side that a region belongs to.
FUNCTION const GLOBAL u32 *side_of(const GLOBAL u32 *regions_a, const GLOBAL u32 *regions_b, u32 region) {
    return region < 2 ? regions_a : regions_b;
}

FUNCTION u32 count_of(const GLOBAL u32 *regions_a, const GLOBAL u32 *regions_b, u32 region) {
    return side_of(regions_a, regions_b, region)[region & 1];
}

// The first row of a region, on its side.
FUNCTION u32 region_start(const GLOBAL u32 *regions_a, const GLOBAL u32 *regions_b, u32 region) {
    return (region & 1) != 0 ? dark_start(side_of(regions_a, regions_b, region)) : 0;
}

// The number of parts into which targets are divided, so that about `cut.parts` groups have work.
FUNCTION u32 splits_of(const GLOBAL u32 *regions_a, const GLOBAL u32 *regions_b, Cut cut) {
    u32 blocks = 0, tiles = 1;
    for (u32 i = 0; i < cut.queries; i++) {
        u32 found = divided(count_of(regions_a, regions_b, i ^ 2), TILE);
        blocks += divided(count_of(regions_a, regions_b, i), BLOCK);
        tiles = found > tiles ? found : tiles;
    }
    u32 splits = at_most(cut.parts / (blocks > 0 ? blocks : 1), tiles);
    return splits > 0 ? splits : 1;
}

// The region of a block of queries, and the block's first row there; `cut.queries` if there are fewer blocks.
FUNCTION u32 region_of(const GLOBAL u32 *regions_a, const GLOBAL u32 *regions_b, Cut cut, u32 block, u32 *row) {
    u32 region = 0;
    for (; region < cut.queries; region++) {
        u32 blocks = divided(count_of(regions_a, regions_b, region), BLOCK);
        if (block < blocks) break;
        block -= blocks;
    }
    *row = block * BLOCK;
    return region;
}

// The work of one group.
typedef struct {
    // First packed row of the queries and of the targets, each on its side.
    u32 query, target;
    // Whether the queries are A's.
    i32 forth;
    // How many of the block's queries, and how many targets, there are.
    u32 queries, targets;
    // Tiles of targets.
    u32 from, to;
    i32 exists;
} Work;

FUNCTION Work work_of(const GLOBAL u32 *regions_a, const GLOBAL u32 *regions_b, Cut cut) {
    Work work;
    u32 splits = splits_of(regions_a, regions_b, cut), split = (u32)GROUP_X % splits, row;
    u32 region = region_of(regions_a, regions_b, cut, (u32)GROUP_X / splits, &row), other = region ^ 2;
    work.exists = region < cut.queries;
    if (!work.exists) return work;
    work.forth = region < 2;
    work.query = region_start(regions_a, regions_b, region) + row;
    work.target = region_start(regions_a, regions_b, other);
    work.queries = at_most(count_of(regions_a, regions_b, region) - row, BLOCK);
    work.targets = count_of(regions_a, regions_b, other);
    u64 tiles = divided(work.targets, TILE);
    work.from = (u32)(tiles * split / splits);
    work.to = (u32)(tiles * (split + 1) / splits);
    return work;
}

#ifdef DIMENSION
// A word of a descriptor: one f32, or four bytes, the missing ones 0.
#if FLOATS
FUNCTION u32 word_of(const GLOBAL f32 *descriptor, u32 word) {
    return word < DIMENSION ? BITS_OF(descriptor[word]) : 0;
}
#else
FUNCTION u32 word_of(const GLOBAL u8 *descriptor, u32 word) {
#if DIMENSION % 4 == 0
    return 4 * word < DIMENSION ? ((const GLOBAL u32 *)descriptor)[word] : 0;
#else
    u32 bytes = 0;
    for (u32 i = 0; i < 4; i++) {
        if (4 * word + i < DIMENSION) bytes |= (u32)descriptor[4 * word + i] << 8 * i;
    }
    return bytes;
#endif
}
#endif

// Four adjacent words, from `word` on, a multiple of 4.
FUNCTION u32x4 words_of(const GLOBAL VALUE *descriptor, u32 word) {
    u32x4 words;
#if DIMENSION % 16 == 0
    words.x = words.y = words.z = words.w = 0;
    if (word < (FLOATS ? DIMENSION : DIMENSION / 4)) words = ((const GLOBAL u32x4 *)descriptor)[word / 4];
#else
    words.x = word_of(descriptor, word);
    words.y = word_of(descriptor, word + 1);
    words.z = word_of(descriptor, word + 2);
    words.w = word_of(descriptor, word + 3);
#endif
    return words;
}
#endif
