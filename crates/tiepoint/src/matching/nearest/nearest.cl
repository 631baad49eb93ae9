// The search for the two nearest neighbours of matching/gpu/regions.h by multiply-adds, on any device. The searches
// from A to B and from B to A use the same code; products are not stored.
//
// A group is 16 x 16 lanes of 8 x 8 products; CHUNK words of both sides at a time lie in local memory, interleaved so
// that four queries or targets are one access.

// Words of a row that lie in local memory at a time.
#define CHUNK 16
// The index of a lane's i-th query or target: 8 of each, 4 adjacent ones in either half of the block.
#define MINE(lane, i) ((i) / 4 * (BLOCK / 2) + (lane) * 4 + (i) % 4)

KERNEL(search) {
    LOCAL u32x4 queries[CHUNK * BLOCK / 4], targets[CHUNK * BLOCK / 4];
    LOCAL u32 staged[3 * BLOCK / 2 * 16];
    Work work = work_of(regions_a, regions_b, args.cut);
    if (!work.exists) return;
    u32 lane = (u32)LANE_X, x = lane & 15, y = lane >> 4;
    if (work.from == work.to) {
        if (lane < BLOCK) best_store(found + 3 * ((u64)GROUP_X * BLOCK + lane), best_none());
        return;
    }
    const GLOBAL u32 *packed = work.forth ? packed_b : packed_a, *norms = work.forth ? norms_b : norms_a;
    const GLOBAL u32 *lengths = work.forth ? norms_a : norms_b;
    const GLOBAL u32x4 *query =
        (const GLOBAL u32x4 *)((work.forth ? packed_a : packed_b) + (u64)(work.query / BLOCK) * WORDS * BLOCK);
    Best best[8];
    Distance length[8];
    UNROLL
    for (u32 r = 0; r < 8; r++) {
        best[r] = best_none();
        length[r] = FROM_WORD(lengths[work.query + MINE(y, r)]);
    }
    u32 tile = work.from;
    do {
        u32 first = work.target + tile * BLOCK;
        const GLOBAL u32x4 *target = (const GLOBAL u32x4 *)(packed + (u64)(first / BLOCK) * WORDS * BLOCK);
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
            _Pragma("unroll 2")
            for (u32 word = 0; word < CHUNK; word++) {
                u32 line = word * BLOCK / 4;
                u32x4 q0 = queries[line + y], q1 = queries[line + BLOCK / 8 + y];
                u32x4 t0 = targets[line + x], t1 = targets[line + BLOCK / 8 + x];
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
    } while (++tile < work.to);
    // Merges the results of the sixteen lanes with targets of the same query, for half of the queries at a time.
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
