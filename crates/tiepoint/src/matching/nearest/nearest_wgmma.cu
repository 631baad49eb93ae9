// The search of nearest.cu for rows of 128 bytes by the instructions of warp groups: sm_90a.
//
// Four warps multiply 64 queries, which they hold in registers, with the 128 targets of a tile in local memory. Tiles
// are fetched by bulk copies, STAGES at a time. One barrier signals that a tile is `full`, another that all warps have
// finished with it (`empty`). Rows are packed in the instructions' order: 16-byte piece p of row r lies at p ^ (r & 7).
//
// Of every 64 targets (a set) a lane sees 16 and keeps only their smallest key, so a key costs a multiply-add and a
// minimum. The second nearest target is the nearest of another set, or one of the other 15 targets in the set of the
// nearest: their distances are computed again at the end.
//
// Fragments (PTX ISA, wgmma.m64n128k32): with g = lane / 4 and t = lane % 4, a lane of warp w holds of A the rows 16w + g
// and 16w + g + 8, bytes 4t.. and 16 + 4t.., of D the same rows, columns 8i + 2t and 8i + 2t + 1.
//
// Also from Rust: WARPS, STAGES.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define STEPS (WORDS / 8)
#define TILE_BYTES (TILE * WORDS * 4)
#define SETS (TILE / 64)

// Words `word` to `word` + 3 of a packed row, `word` a multiple of 4.
FUNCTION const u32 *piece_of(const u32 *rows, u32 row, u32 word) {
    return rows + (u64)row * WORDS + (word ^ (row & 7) << 2);
}

FUNCTION void barrier_open(u32 barrier, u32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

FUNCTION void barrier_arrive(u32 barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

FUNCTION void barrier_wait(u32 barrier, u32 phase) {
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" ::"r"(barrier), "r"(phase)
                 : "memory");
}

FUNCTION void bulk_copy(u32 to, const void *from, u32 bytes, u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

// Starts fetching a tile and its norms; the barrier is full when all bytes have arrived.
FUNCTION void fetch_tile(u32 to, u32 keys, const u32 *packed, const u32 *norms, u32 first, u32 full) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full), "r"(TILE_BYTES + 4 * TILE)
                 : "memory");
    bulk_copy(to, packed + (u64)first * WORDS, TILE_BYTES, full);
    bulk_copy(keys, norms + first, 4 * TILE, full);
}

// The descriptor of local memory as a matrix of rows of 128 bytes, with the pieces of each eight rows ordered as above.
FUNCTION u64 matrix_of(u32 address) { return (u64)(address >> 4) | (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62; }

#define EIGHT(of) \
    "+r"(sum[of]), "+r"(sum[of + 1]), "+r"(sum[of + 2]), "+r"(sum[of + 3]), "+r"(sum[of + 4]), "+r"(sum[of + 5]), \
        "+r"(sum[of + 6]), "+r"(sum[of + 7])

// Adds a step of 32 bytes to the products, or begins with it. They are valid once the warp group has waited for them.
FUNCTION void multiply(i32 *sum, const u32 *query, u64 targets, i32 add) {
    asm volatile(
        "{\n"
        ".reg .pred add;\n"
        "setp.ne.b32 add, %69, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "{%64, %65, %66, %67}, %68, add;\n"
        "}"
        : EIGHT(0), EIGHT(8), EIGHT(16), EIGHT(24), EIGHT(32), EIGHT(40), EIGHT(48), EIGHT(56)
        : "r"(query[0]), "r"(query[1]), "r"(query[2]), "r"(query[3]), "l"(targets), "r"(add));
}

// One step of recursive halving: a lane keeps half of its sums, the second half if its number has the bit `step` set,
// else the first, and adds the same half of the lane `step` away.
FUNCTION void add_halves(i32 *sums, u32 count, u32 lane, u32 step) {
    UNROLL
    for (u32 i = 0; i < count / 2; i++) {
        i32 low = sums[i], high = sums[i + count / 2];
        i32 other = __shfl_xor_sync(0xffffffffu, (lane & step) != 0 ? low : high, step);
        sums[i] = ((lane & step) != 0 ? high : low) + other;
    }
}

// The smallest distance, without the query's squared length, of a query to the other targets in the set of target
// `index` that were seen by the lane that found it; for four queries at a time, each by eight lanes.
FUNCTION i32 second_of_set(const u32 *query, const u32 *packed, const u32 *norms, u32 region, u32 index, u32 lane) {
    u32 set = (index & ~63u) + (index & 6u), piece = 4 * (lane & 7);
    int4 own = *(const int4 *)query;
    i32 sums[16];
    UNROLL
    for (u32 i = 0; i < 16; i++) {
        int4 other = *(const int4 *)piece_of(packed, region + set + (i >> 1) * 8 + (i & 1), piece);
        sums[i] = __dp4a(own.x, other.x, __dp4a(own.y, other.y, __dp4a(own.z, other.z, __dp4a(own.w, other.w, 0))));
    }
    add_halves(sums, 16, lane, 1);
    add_halves(sums, 8, lane, 2);
    add_halves(sums, 4, lane, 4);
    // This lane has two of the sixteen sums.
    u32 first = set + ((lane & 1) * 4 + (lane & 2) + (lane >> 2 & 1)) * 8;
    i32 least = NO_KEY >> SHIFT;
    UNROLL
    for (u32 i = 0; i < 2; i++) {
        i32 norm = (i32)norms[region + first + i];
        i32 distance = norm == NO_KEY ? NO_KEY >> SHIFT : (norm >> SHIFT) - 2 * sums[i];
        least = first + i == index ? least : min(least, distance);
    }
    UNROLL
    for (u32 step = 1; step < 8; step *= 2) least = min(least, __shfl_xor_sync(0xffffffffu, least, step));
    return least;
}

KERNEL(search) {
    __shared__ __align__(1024) u8 tiles[STAGES][TILE_BYTES];
    __shared__ __align__(16) i32 keys[STAGES][TILE];
    __shared__ u64 barriers[2 * STAGES];
    Work work = work_of(regions_a, regions_b, args.cut);
    if (!work.exists) return;
    const u32 lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, warp_query = (threadIdx.x >> 5) * 16;
    const u32 full = local_address(barriers), empty = full + 8 * STAGES;

    // The side of the targets, and the side of the queries.
    const u32 *packed = work.forth ? packed_b : packed_a, *norms = work.forth ? norms_b : norms_a;
    const u32 *queries = work.forth ? packed_a : packed_b, *lengths = work.forth ? norms_a : norms_b;

    if (threadIdx.x == 0) {
        for (u32 stage = 0; stage < STAGES; stage++) {
            barrier_open(full + 8 * stage, 1);
            barrier_open(empty + 8 * stage, WARPS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        for (u32 stage = 0; stage < STAGES - 1 && work.from + stage < work.to; stage++) {
            fetch_tile(local_address(tiles[stage]), local_address(keys[stage]), packed, norms,
                       work.target + (work.from + stage) * TILE, full + 8 * stage);
        }
    }
    __syncthreads();
    u32 query[STEPS][4];
    UNROLL
    for (u32 s = 0; s < STEPS; s++) {
        UNROLL
        for (u32 i = 0; i < 4; i++) {
            query[s][i] = piece_of(queries, work.query + warp_query + g + 8 * (i & 1), 8 * s + 4 * (i >> 1))[t];
        }
    }
    // The smallest keys of two sets of this turn, and the best of the earlier turns, for the rows g and g + 8.
    i32 near[2] = {NO_KEY, NO_KEY}, next[2] = {NO_KEY, NO_KEY};
    Best best[2] = {best_of_turn(NO_KEY, NO_KEY, 0, t), best_of_turn(NO_KEY, NO_KEY, 0, t)};
    u32 slot = 0, phase = 0;
    for (u32 tile = work.from; tile < work.to; tile++) {
        barrier_wait(full + 8 * slot, phase);
        i32 product[8 * TILE / 16];
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        UNROLL
        for (u32 s = 0; s < STEPS; s++) multiply(product, query[s], matrix_of(local_address(tiles[slot])) + 2 * s, s > 0);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        // The memory of the previous tile takes a new one when all warps have finished with it.
        u32 free = slot == 0 ? STAGES - 1 : slot - 1;
        if (threadIdx.x == 0 && tile + STAGES - 1 < work.to) {
            if (tile > work.from) barrier_wait(empty + 8 * free, slot == 0 ? phase ^ 1 : phase);
            fetch_tile(local_address(tiles[free]), local_address(keys[free]), packed, norms,
                       work.target + (tile + STAGES - 1) * TILE, full + 8 * free);
        }
        __syncwarp();
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        UNROLL
        for (u32 i = 0; i < 8 * TILE / 16; i++) asm volatile("" : "+r"(product[i])::"memory");
        const int2 *norm = (const int2 *)keys[slot] + t;
        UNROLL
        for (u32 set = 0; set < SETS; set++) {
            i32 low[2] = {NO_KEY, NO_KEY};
            UNROLL
            for (u32 n = 8 * set; n < 8 * set + 8; n++) {
                int2 own = norm[4 * n];
                UNROLL
                for (u32 r = 0; r < 2; r++) {
                    i32 a = key_of(product[4 * n + 2 * r], own.x), b = key_of(product[4 * n + 2 * r + 1], own.y);
                    low[r] = min(low[r], min(a, b));
                }
            }
            UNROLL
            for (u32 r = 0; r < 2; r++) {
                next[r] = min(next[r], max(near[r], low[r]));
                near[r] = min(near[r], low[r]);
            }
        }
        // All lanes must have read the keys before a bulk copy overwrites them. The barrier alone does not order the two:
        // without the fence a few keys in a billion were those of a later tile while other kernels ran beside this one.
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncwarp();
        if (lane == 0) barrier_arrive(empty + 8 * slot);
        slot = slot + 1 == STAGES ? 0 : slot + 1;
        phase ^= slot == 0;
        if ((tile + 1) % (TURN / TILE) == 0 || tile + 1 == work.to) {
            UNROLL
            for (u32 r = 0; r < 2; r++) {
                best[r] = best_of(best[r], best_of_turn(near[r], next[r], tile * TILE / TURN * TURN, t));
                near[r] = next[r] = NO_KEY;
            }
        }
    }
    UNROLL
    for (u32 r = 0; r < 2; r++) {
        best[r] = best_of_lanes(best[r]);
        UNROLL
        for (u32 half = 0; half < 8; half += 4) {
            u32 of = half + (lane >> 3), index = __shfl_sync(0xffffffffu, best[r].index, 4 * of);
            const u32 *own = piece_of(queries, work.query + warp_query + 8 * r + of, 4 * (lane & 7));
            i32 second = second_of_set(own, packed, norms, work.target, index == NONE ? 0 : index, lane);
            second = __shfl_sync(0xffffffffu, second, 8 * (g & 3));
            if ((g & 4) == half && best[r].index != NONE) best[r].second = min(best[r].second, second);
        }
        u32 row = warp_query + g + 8 * r;
        if (t == 0) store_query(found, row, best[r], lengths[work.query + row]);
    }
}
#endif
