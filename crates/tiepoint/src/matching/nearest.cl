// The two nearest neighbours of every descriptor of A in B and of B in A; no product of all pairs is ever stored.
//
// Both sides lie packed in one array of rows: A from row 0, B from row `span`; of a side first the bright features,
// then, from the next multiple of BLOCK, the dark ones, so that a search goes through one run of rows. These are the
// four regions: A bright, A dark, B bright, B dark; `regions` holds their counts. A work group compares BLOCK rows of
// one region (queries) with some tiles of its counterpart (targets); what it found is merged at the end, in the order
// of distances and indices, so that no cut shows in the result.
//
// From Rust: DIMENSION; WORDS, of a packed row; BLOCK; TILE, targets that a group takes at a time; FLOATS, 1 for f32;
// SHIFT, bits below the squared length in `norms`; PANELS, 1 for rows interleaved by BLOCK, 0 for rows one by one.

#if FLOATS
typedef f32 Distance;
#define FAR FLOAT_OF(0x7f800000u)
#define FROM_WORD(word) FLOAT_OF(word)
#define TO_WORD(distance) BITS_OF(distance)
#define MULTIPLY_ADD(a, b, sum) FMA(FLOAT_OF(a), FLOAT_OF(b), sum)
// Squared distance from the sum of the squared lengths and the product, as the contract has it.
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
// Lanes of the groups that order features.
#define LANES 256

// The nearest so far and the distance of the second; `Best` of nearest.rs.
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

// The best of both, which have seen different neighbours.
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

FUNCTION u32 region_start(const GLOBAL u32 *regions, u32 region, u32 span) {
    return (region >> 1) * span + ((region & 1) != 0 ? divided(regions[region & 2], BLOCK) * BLOCK : 0);
}

// Into how many parts targets are cut, so that about `parts` groups have work.
FUNCTION u32 splits_of(const GLOBAL u32 *regions, u32 parts) {
    u32 blocks = 0, tiles = 1;
    for (u32 i = 0; i < 4; i++) {
        u32 found = divided(regions[i], TILE);
        blocks += divided(regions[i], BLOCK);
        tiles = found > tiles ? found : tiles;
    }
    u32 splits = at_most(parts / (blocks > 0 ? blocks : 1), tiles);
    return splits > 0 ? splits : 1;
}

// The region of a block of queries and its first row there; 4 when there are fewer blocks.
FUNCTION u32 region_of(const GLOBAL u32 *regions, u32 block, u32 *row) {
    u32 region = 0;
    for (; region < 4; region++) {
        u32 blocks = divided(regions[region], BLOCK);
        if (block < blocks) break;
        block -= blocks;
    }
    *row = block * BLOCK;
    return region;
}

// What one group has to do.
typedef struct {
    // First packed row of the queries and of the targets.
    u32 query, target;
    // How many of the block's queries, and how many targets, there are.
    u32 queries, targets;
    // Tiles of targets.
    u32 from, to;
    i32 exists;
} Work;

FUNCTION Work work_of(const GLOBAL u32 *regions, u32 span, u32 parts) {
    Work work;
    u32 splits = splits_of(regions, parts), split = (u32)GROUP_X % splits, row;
    u32 region = region_of(regions, (u32)GROUP_X / splits, &row), other = region ^ 2;
    work.exists = region < 4;
    if (!work.exists) return work;
    work.query = region_start(regions, region, span) + row;
    work.target = region_start(regions, other, span);
    work.queries = at_most(regions[region] - row, BLOCK);
    work.targets = regions[other];
    u64 tiles = divided(work.targets, TILE);
    work.from = (u32)(tiles * split / splits);
    work.to = (u32)(tiles * (split + 1) / splits);
    return work;
}

// Counts the bright features of every run of LANES; one side in GROUP_Y 0, the other in 1.
KERNEL(LANES, 1) count_bright(GLOBAL u32 *RESTRICT bright, const GLOBAL Keypoint *keypoints_a,
                              const GLOBAL u32 *count_a, u32 capacity_a, const GLOBAL Keypoint *keypoints_b,
                              const GLOBAL u32 *count_b, u32 capacity_b) {
    LOCAL u32 sum;
    const GLOBAL Keypoint *keypoints = GROUP_Y == 0 ? keypoints_a : keypoints_b;
    u32 count = GROUP_Y == 0 ? at_most(*count_a, capacity_a) : at_most(*count_b, capacity_b);
    u32 i = (u32)GROUP_X * LANES + (u32)LANE_X;
    if (LANE_X == 0) sum = 0;
    BARRIER();
    if (i < count && keypoints[i].sign >= 0) ATOMIC_ADD(&sum, 1u);
    BARRIER();
    if (LANE_X == 0) bright[GROUP_Y * GROUPS_X + GROUP_X] = sum;
}

// Writes which feature every packed row is, and the counts of the regions. Features keep their order.
KERNEL(LANES, 1) order_rows(GLOBAL u32 *RESTRICT order, GLOBAL u32 *RESTRICT regions,
                            const GLOBAL u32 *RESTRICT bright, const GLOBAL Keypoint *keypoints_a,
                            const GLOBAL u32 *count_a, u32 capacity_a, const GLOBAL Keypoint *keypoints_b,
                            const GLOBAL u32 *count_b, u32 capacity_b, u32 span, u32 by_sign) {
    // Bright features before this run, and all of them; then the bright ones up to each lane.
    LOCAL u32 sums[2], ranks[LANES];
    const GLOBAL Keypoint *keypoints = GROUP_Y == 0 ? keypoints_a : keypoints_b;
    u32 count = GROUP_Y == 0 ? at_most(*count_a, capacity_a) : at_most(*count_b, capacity_b);
    u32 run = (u32)GROUP_X, lane = (u32)LANE_X, first = run * LANES, i = first + lane;
    if (first >= count && run > 0) return;
    u32 is_bright = i < count && (by_sign == 0 || keypoints[i].sign >= 0);
    if (lane < 2) sums[lane] = by_sign != 0 ? 0 : (lane == 0 ? first : count);
    ranks[lane] = is_bright;
    BARRIER();
    if (by_sign != 0) {
        u32 before = 0, all = 0;
        for (u32 r = lane; r < divided(count, LANES); r += LANES) {
            u32 found = bright[GROUP_Y * GROUPS_X + (i32)r];
            before += r < run ? found : 0;
            all += found;
        }
        ATOMIC_ADD(&sums[0], before);
        ATOMIC_ADD(&sums[1], all);
    }
    for (u32 step = 1; step < LANES; step *= 2) {
        u32 other = lane >= step ? ranks[lane - step] : 0;
        BARRIER();
        ranks[lane] += other;
        BARRIER();
    }
    u32 rank = sums[0] + ranks[lane] - is_bright;
    u32 row = is_bright ? rank : divided(sums[1], BLOCK) * BLOCK + i - rank;
    if (i < count) order[(u32)GROUP_Y * span + row] = i;
    if (run == 0 && lane < 2) regions[2 * (u32)GROUP_Y + lane] = lane == 0 ? sums[1] : count - sums[1];
}

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

// Packs descriptors by `order`, one lane a row; rows of the last block of a region that stand for no feature are 0.
KERNEL(BLOCK, 1) pack_rows(GLOBAL u32 *RESTRICT packed, GLOBAL u32 *RESTRICT norms, const GLOBAL u32 *RESTRICT order,
                           const GLOBAL u32 *RESTRICT regions, const GLOBAL VALUE *a, const GLOBAL VALUE *b,
                           u32 span) {
    u32 block = (u32)GROUP_X, lane = (u32)LANE_X, row = block * BLOCK + lane;
    u32 side = block * BLOCK >= span, region = 2 * side;
    u32 dark = region_start(regions, region + 1, span);
    if (row >= dark) region++;
    u32 place = row - (row >= dark ? dark : side * span);
    if (place >= divided(regions[region], BLOCK) * BLOCK) return;
    i32 exists = place < regions[region];
    const GLOBAL VALUE *from = (side != 0 ? b : a) + (u64)(exists ? order[row] : 0) * DIMENSION;
#if PANELS
    GLOBAL u32 *to = packed + (u64)block * WORDS * BLOCK + lane;
#else
    GLOBAL u32 *to = packed + (u64)row * WORDS;
#endif
    Distance length = 0;
    for (u32 word = 0; word < WORDS; word++) {
        u32 value = exists ? word_of(from, word) : 0;
        length = MULTIPLY_ADD(value, value, length);
        to[word * (PANELS ? BLOCK : 1)] = value;
    }
#if SHIFT
    // Above it the number of the target among those of its lane, and above all others where there is none: nearest.cu.
    u32 number = ((place >> 3) * 2 + (place & 1)) & ((1 << SHIFT) - 1);
    norms[row] = exists ? (u32)length << SHIFT | number : 0x7fffffffu;
#else
    norms[row] = TO_WORD(length);
#endif
}

// Merges what the groups found, one lane a query, and gives the features their own indices again.
KERNEL(BLOCK, 1) merge_found(GLOBAL u32 *RESTRICT nearest, const GLOBAL u32 *RESTRICT found,
                             const GLOBAL u32 *RESTRICT order, const GLOBAL u32 *RESTRICT regions, u32 span, u32 parts,
                             u32 capacity_a) {
    u32 splits = splits_of(regions, parts), block = (u32)GROUP_X, lane = (u32)LANE_X, row;
    u32 region = region_of(regions, block, &row);
    if (region >= 4 || row + lane >= regions[region]) return;
    Best best = best_none();
    for (u32 split = 0; split < splits; split++) {
        u64 at = ((u64)block * splits + split) * BLOCK + lane;
        best = best_of(best, best_load(found + 3 * at));
    }
    if (best.index != NONE) best.index = order[region_start(regions, region ^ 2, span) + best.index];
    u32 feature = order[region_start(regions, region, span) + row + lane];
    best_store(nearest + 3 * (u64)(region >= 2 ? capacity_a + feature : feature), best);
}

#if PANELS
// Words of a row that lie in local memory at a time.
#define CHUNK 16
// A lane's queries and targets are 8 of each: 4 beside one another in either half of the block.
#define MINE(lane, i) ((i) / 4 * (BLOCK / 2) + (lane) * 4 + (i) % 4)

// The search by multiply-adds: 16 x 16 lanes of 8 x 8 products, words of both sides in local memory.
KERNEL(256, 1) search(GLOBAL u32 *RESTRICT found, const GLOBAL u32 *RESTRICT packed, const GLOBAL u32 *RESTRICT norms,
                      const GLOBAL u32 *RESTRICT regions, u32 span, u32 parts) {
    LOCAL uint4 queries[CHUNK * BLOCK / 4], targets[CHUNK * BLOCK / 4];
    LOCAL u32 staged[3 * BLOCK / 2 * 16];
    Work work = work_of(regions, span, parts);
    if (!work.exists) return;
    u32 lane = (u32)LANE_X, x = lane & 15, y = lane >> 4;
    const GLOBAL uint4 *query = (const GLOBAL uint4 *)(packed + (u64)(work.query / BLOCK) * WORDS * BLOCK);
    Best best[8];
    Distance length[8];
    UNROLL
    for (u32 r = 0; r < 8; r++) {
        best[r] = best_none();
        length[r] = FROM_WORD(norms[work.query + MINE(y, r)]);
    }
    for (u32 tile = work.from; tile < work.to; tile++) {
        u32 first = work.target + tile * BLOCK;
        const GLOBAL uint4 *target = (const GLOBAL uint4 *)(packed + (u64)(first / BLOCK) * WORDS * BLOCK);
        Distance product[8][8];
        UNROLL
        for (u32 r = 0; r < 8; r++) {
            UNROLL
            for (u32 c = 0; c < 8; c++) product[r][c] = 0;
        }
        for (u32 chunk = 0; chunk < WORDS; chunk += CHUNK) {
            BARRIER();
            UNROLL
            for (u32 i = 0; i < CHUNK * BLOCK / 4; i += 256) {
                queries[i + lane] = query[chunk * BLOCK / 4 + i + lane];
                targets[i + lane] = target[chunk * BLOCK / 4 + i + lane];
            }
            BARRIER();
            UNROLL
            for (u32 word = 0; word < CHUNK; word++) {
                u32 line = word * BLOCK / 4;
                uint4 q0 = queries[line + y], q1 = queries[line + BLOCK / 8 + y];
                uint4 t0 = targets[line + x], t1 = targets[line + BLOCK / 8 + x];
                u32 q[8] = {q0.x, q0.y, q0.z, q0.w, q1.x, q1.y, q1.z, q1.w};
                u32 t[8] = {t0.x, t0.y, t0.z, t0.w, t1.x, t1.y, t1.z, t1.w};
                UNROLL
                for (u32 r = 0; r < 8; r++) {
                    UNROLL
                    for (u32 c = 0; c < 8; c++) product[r][c] = MULTIPLY_ADD(q[r], t[c], product[r][c]);
                }
            }
        }
        // A lane's targets come in ascending order: of equally near ones the first stays.
        UNROLL
        for (u32 c = 0; c < 8; c++) {
            u32 index = tile * BLOCK + MINE(x, c);
            Distance other = FROM_WORD(norms[work.target + index]);
            UNROLL
            for (u32 r = 0; r < 8; r++) {
                Distance distance = SQUARED(length[r] + other, product[r][c]);
                if (distance < best[r].second && index < work.targets) {
                    i32 nearer = distance < best[r].first;
                    best[r].second = nearer ? best[r].first : distance;
                    best[r].first = nearer ? distance : best[r].first;
                    best[r].index = nearer ? index : best[r].index;
                }
            }
        }
    }
    // Sixteen lanes have seen targets of the same query: half of the queries at a time.
    UNROLL
    for (u32 part = 0; part < 2; part++) {
        BARRIER();
        UNROLL
        for (u32 r = 0; r < 4; r++) {
            u32 at = 3 * ((y * 4 + r) * 16 + x);
            staged[at] = TO_WORD(best[part * 4 + r].first);
            staged[at + 1] = TO_WORD(best[part * 4 + r].second);
            staged[at + 2] = best[part * 4 + r].index;
        }
        BARRIER();
        if (lane < BLOCK / 2) {
            Best all = best_none();
            for (u32 i = 0; i < 16; i++) {
                Best one;
                one.first = FROM_WORD(staged[3 * (lane * 16 + i)]);
                one.second = FROM_WORD(staged[3 * (lane * 16 + i) + 1]);
                one.index = staged[3 * (lane * 16 + i) + 2];
                all = best_of(all, one);
            }
            best_store(found + 3 * ((u64)GROUP_X * BLOCK + part * (BLOCK / 2) + lane), all);
        }
    }
}
#endif
