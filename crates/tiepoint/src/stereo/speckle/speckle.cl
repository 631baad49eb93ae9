// Removal of small regions: mod.rs. Pixels of a tile are joined in local memory, tiles along their borders by a forest
// over the image in which no parent comes after its children; then the sizes of tiles' regions are added to the roots.

#define TILE (TILE_WIDTH * TILE_HEIGHT)
#define NOBODY 0xffffffffu

FUNCTION bool joins(f32 a, f32 b, f32 difference) { return ABS(a - b) <= difference; }

FUNCTION u32 local_root(const volatile LOCAL_POINTER u32 *parent, u32 p) {
    while (parent[p] != p) p = parent[p];
    return p;
}

FUNCTION void local_join(LOCAL_POINTER u32 *parent, u32 a, u32 b) {
    for (;;) {
        a = local_root(parent, a);
        b = local_root(parent, b);
        if (a == b) return;
        const u32 low = a < b ? a : b, high = a < b ? b : a;
        const u32 before = ATOMIC_MIN(&parent[high], low);
        if (before == high) return;
        // Another lane was first: the region that it joined must be joined, too.
        a = before;
        b = low;
    }
}

FUNCTION u32 root_of(const volatile GLOBAL u32 *parent, u32 p) {
    u32 next = parent[p];
    while (next != p) {
        p = next;
        next = parent[p];
    }
    return p;
}

FUNCTION void join(GLOBAL u32 *parent, u32 a, u32 b) {
    for (;;) {
        a = root_of(parent, a);
        b = root_of(parent, b);
        if (a == b) return;
        const u32 low = a < b ? a : b, high = a < b ? b : a;
        const u32 before = ATOMIC_MIN(&parent[high], low);
        if (before == high) return;
        a = before;
        b = low;
    }
}

// The label of a pixel is the first pixel of its region in the tile, at which the region's parent and size are stored.
KERNEL(label) {
    LOCAL f32 tile[TILE];
    LOCAL u32 forest[TILE];
    LOCAL u32 numbers[TILE];
    const Plane plane = args.plane;
    const i32 left = GROUP_X % args.across * TILE_WIDTH, top = GROUP_X / args.across * TILE_HEIGHT;
    const GLOBAL f32 *values = map + plane.step * (u64)GROUP_Z;
    const u64 image = (u64)plane.row * plane.height * (u64)GROUP_Z;
    for (i32 i = LANE_X; i < TILE; i += LANES) {
        const i32 x = left + i % TILE_WIDTH, y = top + i / TILE_WIDTH;
        tile[i] = x < plane.row && y < plane.height ? values[(u64)y * plane.pitch + x] : INVALID;
        forest[i] = (u32)i;
        numbers[i] = 0u;
    }
    BARRIER();
    for (i32 i = LANE_X; i < TILE; i += LANES) {
        const i32 beside = i % TILE_WIDTH > 0 && joins(tile[i], tile[i - 1], args.difference);
        if (beside) local_join(forest, (u32)i, (u32)(i - 1));
        if (i >= TILE_WIDTH && joins(tile[i], tile[i - TILE_WIDTH], args.difference)) {
            // This link follows from the others if all four pixels of the square are joined.
            const i32 follows = beside && joins(tile[i - 1], tile[i - 1 - TILE_WIDTH], args.difference)
                && joins(tile[i - TILE_WIDTH], tile[i - 1 - TILE_WIDTH], args.difference);
            if (!follows) local_join(forest, (u32)i, (u32)(i - TILE_WIDTH));
        }
    }
    BARRIER();
    for (i32 i = LANE_X; i < TILE; i += LANES) ATOMIC_ADD(&numbers[local_root(forest, (u32)i)], 1u);
    BARRIER();
    for (i32 i = LANE_X; i < TILE; i += LANES) {
        const i32 x = left + i % TILE_WIDTH, y = top + i / TILE_WIDTH;
        if (x >= plane.row || y >= plane.height) continue;
        const u32 at = (u32)y * (u32)plane.row + (u32)x, root = local_root(forest, (u32)i);
        const u32 first = (u32)(top + (i32)root / TILE_WIDTH) * (u32)plane.row + (u32)(left + (i32)root % TILE_WIDTH);
        const bool is_valid = ABS(tile[i]) < INVALID;
        labels[image + at] = is_valid ? first : NOBODY;
        parents[image + at] = at;
        counts[image + at] = is_valid && root == (u32)i ? numbers[i] : 0u;
    }
}

// Joins the regions of a tile with those of the tiles left of it and above.
KERNEL(join_tiles) {
    const Plane plane = args.plane;
    const i32 left = GROUP_X % args.across * TILE_WIDTH, top = GROUP_X / args.across * TILE_HEIGHT;
    const GLOBAL f32 *values = map + plane.step * (u64)GROUP_Z;
    const u64 image = (u64)plane.row * plane.height * (u64)GROUP_Z;
    for (i32 i = LANE_X; i < TILE_WIDTH + TILE_HEIGHT; i += LANES) {
        const i32 is_row = i < TILE_WIDTH;
        const i32 x = left + (is_row ? i : 0), y = top + (is_row ? 0 : i - TILE_WIDTH);
        const i32 bx = is_row ? x : x - 1, by = is_row ? y - 1 : y;
        if (x >= plane.row || y >= plane.height || bx < 0 || by < 0) continue;
        if (joins(values[(u64)y * plane.pitch + x], values[(u64)by * plane.pitch + bx], args.difference)) {
            const u64 at = image + (u64)y * plane.row + x, before = image + (u64)by * plane.row + bx;
            join(parents + image, labels[at], labels[before]);
        }
    }
}

// Adds the number of pixels of each tile's regions to the regions of the image.
KERNEL(count) {
    const Plane plane = args.plane;
    const i32 x = PIXEL_X, y = PIXEL_Y;
    if (x >= plane.row || y >= plane.height) return;
    const u64 image = (u64)plane.row * plane.height * (u64)GROUP_Z;
    const u32 at = (u32)y * (u32)plane.row + (u32)x;
    if (labels[image + at] != at) return;
    const u32 root = root_of(parents + image, at);
    if (root != at) ATOMIC_ADD(&counts[image + root], counts[image + at]);
}

KERNEL(remove_small) {
    const Plane plane = args.plane;
    const i32 x = PIXEL_X, y = PIXEL_Y;
    if (x >= plane.row || y >= plane.height) return;
    const u64 image = (u64)plane.row * plane.height * (u64)GROUP_Z;
    const u32 label = labels[image + (u64)y * plane.row + x];
    if (label == NOBODY || counts[image + root_of(parents + image, label)] >= args.size) return;
    map[plane.step * (u64)GROUP_Z + (u64)y * plane.pitch + x] = INVALID;
}
