// The search for nearest neighbours of matching/gpu/regions.h on tensor cores, for 8-bit descriptors of up to 255
// values, with the same bits, because products are integers. For sm_80 and later.
//
// A group holds BLOCK queries in the registers of its warps, as the A of D = A B, and fetches TILE targets at a time
// into local memory, with STAGES tiles in flight. A warp multiplies its ROW_TILES x 16 queries with 8 targets at a
// time, and every lane keeps the two smallest keys (keys.h) that it sees of each query, with at most three minima or
// maxima for each product: comparing is the bottleneck.
//
// Fragments (PTX ISA, mma.m16n8k32): with g = lane / 4 and t = lane % 4, a lane holds of A the rows g and g + 8, bytes
// 4t.. and 16 + 4t.., of B column g likewise, of D rows g and g + 8, columns 2t and 2t + 1.
//
// Also from Rust: WARPS, ROW_TILES, STAGES.

#if __CUDA_ARCH__ >= 800
#define STEPS (WORDS / 8)
// Bytes from row to row in local memory: an odd number of pieces of 16, so that eight rows lie in different banks.
#define STRIDE (4 * WORDS + 16)
#define THREADS (32 * WARPS)
#define QUERIES (2 * ROW_TILES)

// Starts copying 16 bytes into local memory.
FUNCTION void fetch_16(u32 to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

// Loads four matrices of 8 rows of 16 bytes; each lane passes one row's address and gets its element of each matrix.
FUNCTION void load_matrices(u32 *fragment, u32 from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
                 : "r"(from)
                 : "memory");
}

FUNCTION void multiply(i32 *sum, const u32 *a, const u32 *b) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%10, %11, %12, %13};"
        : "=r"(sum[0]), "=r"(sum[1]), "=r"(sum[2]), "=r"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(sum[0]), "r"(sum[1]), "r"(sum[2]),
          "r"(sum[3]));
}

FUNCTION void fetch_tile(u32 to, u32 keys, const u32 *packed, const u32 *norms, u32 first) {
    const u32 pieces = WORDS / 4;
    UNROLL
    for (u32 i = 0; i < TILE * pieces; i += THREADS) {
        u32 row = (i + threadIdx.x) / pieces, piece = (i + threadIdx.x) % pieces;
        if (TILE * pieces % THREADS != 0 && row >= TILE) break;
        fetch_16(to + row * STRIDE + piece * 16, packed + (u64)(first + row) * WORDS + piece * 4);
    }
    if (threadIdx.x < TILE / 4) fetch_16(keys + threadIdx.x * 16, norms + first + threadIdx.x * 4);
}

KERNEL(search) {
    __shared__ __align__(16) u8 tiles[STAGES][TILE * STRIDE];
    __shared__ __align__(16) i32 keys[STAGES][TILE];
    Work work = work_of(regions_a, regions_b, args.cut);
    if (!work.exists) return;
    const u32 lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    const u32 first_query = (threadIdx.x >> 5) * ROW_TILES * 16 + g;

    // The side of the targets, and the side of the queries.
    const u32 *packed = work.forth ? packed_b : packed_a, *norms = work.forth ? norms_b : norms_a;
    const u32 *queries = work.forth ? packed_a : packed_b, *lengths = work.forth ? norms_a : norms_b;

    UNROLL
    for (u32 stage = 0; stage < STAGES - 1; stage++) {
        if (work.from + stage < work.to) {
            fetch_tile(local_address(tiles[stage]), local_address(keys[stage]), packed, norms,
                       work.target + (work.from + stage) * TILE);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    u32 query[ROW_TILES][STEPS][4];
    UNROLL
    for (u32 m = 0; m < ROW_TILES; m++) {
        const u32 *row = queries + (u64)(work.query + first_query + 16 * m) * WORDS + t;
        UNROLL
        for (u32 s = 0; s < STEPS; s++) {
            query[m][s][0] = row[8 * s];
            query[m][s][1] = row[8 * WORDS + 8 * s];
            query[m][s][2] = row[8 * s + 4];
            query[m][s][3] = row[8 * WORDS + 8 * s + 4];
        }
    }
    // The two smallest keys of this turn, and the best of the earlier turns.
    i32 near[QUERIES], next[QUERIES];
    Best best[QUERIES];
    UNROLL
    for (u32 r = 0; r < QUERIES; r++) {
        near[r] = next[r] = NO_KEY;
        best[r] = best_of_turn(NO_KEY, NO_KEY, 0, t);
    }
    u32 slot = 0;
    for (u32 tile = work.from; tile < work.to; tile++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        // All warps have finished the previous tile, so its memory can take a new one.
        u32 free = slot == 0 ? STAGES - 1 : slot - 1;
        if (tile + STAGES - 1 < work.to) {
            fetch_tile(local_address(tiles[free]), local_address(keys[free]), packed, norms,
                       work.target + (tile + STAGES - 1) * TILE);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        u32 place = local_address(tiles[slot]) + (lane & 7) * STRIDE + (lane >> 3) * 16;
        const int2 *norm = (const int2 *)keys[slot] + t;
        UNROLL
        for (u32 n = 0; n < TILE / 8; n++) {
            u32 target[2 * STEPS];
            UNROLL
            for (u32 s = 0; s < STEPS; s += 2) load_matrices(target + 2 * s, place + n * 8 * STRIDE + s * 32);
            int2 own = norm[4 * n];
            UNROLL
            for (u32 m = 0; m < ROW_TILES; m++) {
                i32 product[4] = {0, 0, 0, 0};
                UNROLL
                for (u32 s = 0; s < STEPS; s++) multiply(product, query[m][s], target + 2 * s);
                UNROLL
                for (u32 half = 0; half < 2; half++) {
                    u32 r = 2 * m + half;
                    i32 a = key_of(product[2 * half], own.x), b = key_of(product[2 * half + 1], own.y);
                    i32 low = min(a, b), high = max(a, b);
                    next[r] = min(min(next[r], high), max(near[r], low));
                    near[r] = min(near[r], low);
                }
            }
        }
        slot = slot + 1 == STAGES ? 0 : slot + 1;
        if ((tile + 1) % (TURN / TILE) == 0 || tile + 1 == work.to) {
            UNROLL
            for (u32 r = 0; r < QUERIES; r++) {
                best[r] = best_of(best[r], best_of_turn(near[r], next[r], tile * TILE / TURN * TURN, t));
                near[r] = next[r] = NO_KEY;
            }
        }
    }
    UNROLL
    for (u32 r = 0; r < QUERIES; r++) {
        u32 row = first_query + 8 * r;
        best[r] = best_of_lanes(best[r]);
        if (t == 0) store_query(found, row, best[r], lengths[work.query + row]);
    }
}
#endif
