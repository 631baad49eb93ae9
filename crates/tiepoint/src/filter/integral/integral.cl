// The integral image in one pass: every pixel is read once and every sum written once.
//
// Each group computes one tile of TILE_WIDTH x TILE_HEIGHT pixels. Tiles are numbered by a counter when groups start,
// so that a group waits only for groups that have started. A tile publishes the sums of its rows; those of all tiles to
// its left give it the sum of every row up to its left edge. If the tile above has not published its bottom row of I by
// then, this tile publishes for each column the sum over its rows from the image's left edge to that column, and adds
// up such sums of the tiles above, up to the first that has published its bottom row (the look-back of Merrill and
// Garland 2016, over columns). Waits are short, because neither kind of sums depends on the tiles above.
//
// Each sum is published as one word: the sum, and in the bits above it the mark of this run. A word is therefore either
// old or complete, and needs no fence and no clearing. The last group of a run sets the mark of the next run.
//
// A lane has ROWS rows of four pixels; ROW_GROUPS lanes lie one above the other.

#define QUADS (TILE_WIDTH / 4)
#define ROW_GROUPS (GROUP / QUADS)
#define ROWS (TILE_HEIGHT / ROW_GROUPS)
// The number of lanes that together scan a row, or read the sums of the tiles to the left.
#define PARTS (GROUP / TILE_HEIGHT)
// Tiles above that are read at a time.
#define WINDOW 2

// A published word: of a row, 24 bits of the sum and the mark; of a column, SUM_BITS of the sum, its kind and the mark.
#define ROW_BITS 24
#define SUM_BITS 54
#define COLUMN_SUM 1u
#define BOTTOM_ROW 2u

FUNCTION void store_4(GLOBAL SUM *to, SUM a, SUM b, SUM c, SUM d) {
#if SUM_IS_WIDE
    GLOBAL u64x2 *wide = (GLOBAL u64x2 *)to;
    wide[0] = U64X2(a, b);
    wide[1] = U64X2(c, d);
#else
    *(GLOBAL u32x4 *)to = U32X4(a, b, c, d);
#endif
}

// Loads the levels of a lane's ROWS rows of four pixels, summed along each row.
FUNCTION void row_sums(u32 v[ROWS][4], const GLOBAL PIXEL *pixels, i32 x, i32 y, i32 width, i32 height, i32 pitch) {
    // All loads are issued before the first value is used.
    PIXEL_X4 four[ROWS];
    UNROLL
    for (i32 r = 0; r < ROWS; r++) {
        four[r].x = four[r].y = four[r].z = four[r].w = 0;
        // Rows are padded to multiples of four; the padding affects no sum that is used.
        if (x < width && y + r < height) four[r] = *(const GLOBAL PIXEL_X4 *)(pixels + (u64)(y + r) * pitch + x);
    }
    UNROLL
    for (i32 r = 0; r < ROWS; r++) {
        u32 a = pixel_level(four[r].x), b = pixel_level(four[r].y);
        u32 c = pixel_level(four[r].z), d = pixel_level(four[r].w);
        v[r][0] = a, v[r][1] = a + b, v[r][2] = a + b + c, v[r][3] = a + b + c + d;
    }
}

// Replaces the sum of each quad in one part of a row by the sum of all quads before it in the row. PARTS lanes scan a
// row. Returns the sum of the row up to the end of this part.
FUNCTION u32 scan_row(LOCAL_POINTER u32 *own, LOCAL_POINTER u32 *parts, i32 part) {
    u32 sum = 0;
    UNROLL
    for (i32 k = 0; k < QUADS / PARTS; k++) sum += own[k];
    parts[part] = sum;
    BARRIER();
    u32 before = 0;
    UNROLL
    for (i32 k = 0; k < PARTS; k++) before += k < part ? parts[k] : 0u;
    UNROLL
    for (i32 k = 0; k < QUADS / PARTS; k++) {
        u32 value = own[k];
        own[k] = before;
        before += value;
    }
    return before;
}

// The sum of one row over every PARTS-th tile from `first` on that lies left of this one; waits for each to publish it.
FUNCTION SUM sum_to_the_left(volatile GLOBAL u32 *row_words, i32 first, i32 tile, i32 row, u32 mark) {
    SUM sum = 0;
    for (i32 other = first; other < tile; other += PARTS) {
        u32 word;
        do word = row_words[(u64)other * TILE_HEIGHT + row];
        while (word >> ROW_BITS != mark);
        sum += word & ((1u << ROW_BITS) - 1u);
    }
    return sum;
}

// The value of I just above the tile in one column: sums of columns of the tiles above, up to the first tile that has
// published its bottom row. `words` is this tile's word of the column, `stride` is the number of words from a tile to
// the tile below it, `looking` is the number of tiles above.
FUNCTION SUM sum_above(volatile GLOBAL u64 *words, i64 stride, i32 looking, u32 is_sum, u32 is_bottom) {
    const u64 word_mask = ((u64)1 << SUM_BITS) - 1;
    SUM above = 0;
    i32 at = 1;
    while (looking > 0) {
        u64 window[WINDOW];
        UNROLL
        for (i32 k = 0; k < WINDOW; k++) {
            i32 up = looking > k ? at + k : at;
            window[k] = words[-(up * stride)];
        }
        // Up to the first unknown sum, and not beyond a bottom row.
        i32 left_to_look = looking;
        UNROLL
        for (i32 k = 0; k < WINDOW; k++) {
            u32 kind = (u32)(window[k] >> SUM_BITS);
            if (left_to_look == looking - k && left_to_look > 0 && (kind == is_sum || kind == is_bottom)) {
                above += (SUM)(window[k] & word_mask);
                left_to_look = kind == is_bottom ? 0 : left_to_look - 1;
            }
        }
        at += looking - left_to_look;
        looking = left_to_look;
    }
    return above;
}

// Publishes the sum of one column for the tiles below and returns the sum above the tile. `own` is the sum over this
// tile's rows from the image's left edge to the column; `just_above` is the word of the tile above, read earlier.
FUNCTION SUM publish_column(volatile GLOBAL u64 *words, i64 stride, i32 tiles_above, u64 just_above, SUM own,
                            u32 mark) {
    const u32 is_sum = mark << 2 | COLUMN_SUM, is_bottom = mark << 2 | BOTTOM_ROW;
    SUM above = 0;
    if ((u32)(just_above >> SUM_BITS) == is_bottom) {
        above = (SUM)(just_above & (((u64)1 << SUM_BITS) - 1));
    } else if (tiles_above > 0) {
        words[0] = (u64)is_sum << SUM_BITS | own;
        above = sum_above(words, stride, tiles_above, is_sum, is_bottom);
    }
    words[0] = (u64)is_bottom << SUM_BITS | (SUM)(above + own);
    return above;
}

KERNEL(integral) {
    LOCAL u32 mark;
    LOCAL u32 ticket;
    LOCAL u32 quads[TILE_HEIGHT][QUADS + 1];
    LOCAL u32 parts[TILE_HEIGHT][PARTS];
    LOCAL SUM partial[PARTS][TILE_HEIGHT];
    // For each row the sum of everything left of the tile, from the tile's top row to this one.
    LOCAL SUM left[TILE_HEIGHT];
    LOCAL u32 columns[ROW_GROUPS][TILE_WIDTH];
    LOCAL SUM top[TILE_WIDTH];

    const i32 lane = LANE_X, width = args.width, height = args.height, images = args.images;
    if (lane == 0) {
        ticket = ATOMIC_ADD(state, 1u);
        mark = state[2] % 255u + 1u;
    }
    BARRIER();
    const i32 across = (width + TILE_WIDTH - 1) / TILE_WIDTH, down = (height + TILE_HEIGHT - 1) / TILE_HEIGHT;
    // All images, then the next row of tiles: with many images the row above has usually finished long before.
    const i32 tile = (i32)ticket;
    const i32 tx = tile % across, image = tile / across % images, ty = tile / across / images;
    // From a tile to the one below it.
    const i32 next_row = across * images;
    pixels += (u64)image * height * args.pitch;
    out += args.first + (u64)image * (height + 1) * args.out_pitch;

    const i32 quad = lane % QUADS, row_group = lane / QUADS;
    const i32 x = tx * TILE_WIDTH + 4 * quad, row = row_group * ROWS, y = ty * TILE_HEIGHT + row;
    u32 v[ROWS][4];
    row_sums(v, pixels, x, y, width, height, args.pitch);
    UNROLL
    for (i32 r = 0; r < ROWS; r++) quads[row + r][quad] = v[r][3];
    // The bottom row of the tile above has usually been published by now; reading it early hides the latency.
    volatile GLOBAL u64 *words = column_words + (u64)tile * TILE_WIDTH + lane;
    const i64 stride = (i64)next_row * TILE_WIDTH;
    const u64 just_above = ty > 0 ? words[-stride] : 0;
    BARRIER();

    {
        i32 scanned = lane / PARTS, part = lane % PARTS;
        u32 sum = scan_row(&quads[scanned][part * (QUADS / PARTS)], parts[scanned], part);
        if (part == PARTS - 1) row_words[(u64)tile * TILE_HEIGHT + scanned] = mark << ROW_BITS | sum;
    }
    BARRIER();
    {
        i32 summed = lane % TILE_HEIGHT, part = lane / TILE_HEIGHT;
        partial[part][summed] = sum_to_the_left(row_words, tile - tx + part, tile, summed, mark);
    }
    // Sums down the columns of the tile, inside a lane.
    UNROLL
    for (i32 r = 0; r < ROWS; r++) {
        u32 before = quads[row + r][quad];
        UNROLL
        for (i32 k = 0; k < 4; k++) v[r][k] += before + (r > 0 ? v[r - 1][k] : 0u);
    }
    UNROLL
    for (i32 k = 0; k < 4; k++) columns[row_group][4 * quad + k] = v[ROWS - 1][k];
    BARRIER();
    if (lane < TILE_HEIGHT) {
        SUM sum = 0;
        UNROLL
        for (i32 k = 0; k < PARTS; k++) sum += partial[k][lane];
        partial[0][lane] = sum;
    }
    BARRIER();
    if (lane < TILE_HEIGHT) {
        SUM sum = 0;
        UNROLL
        for (i32 r = 0; r < TILE_HEIGHT; r++) sum += r <= lane ? partial[0][r] : 0;
        left[lane] = sum;
    }
    BARRIER();

    SUM own = left[TILE_HEIGHT - 1];
    UNROLL
    for (i32 k = 0; k < ROW_GROUPS; k++) own += columns[k][lane];
    top[lane] = publish_column(words, stride, ty, just_above, own, mark);
    BARRIER();
    if (lane == 0 && ATOMIC_ADD(state + 1, 1u) == (u32)(next_row * down) - 1u) {
        // All groups have started and have read the mark, so it can change.
        state[0] = 0u;
        state[1] = 0u;
        state[2] += 1u;
    }

    SUM base[4];
    UNROLL
    for (i32 k = 0; k < 4; k++) {
        base[k] = top[4 * quad + k];
        for (i32 g = 0; g < row_group; g++) base[k] += columns[g][4 * quad + k];
    }
    if (x >= width) return;
    UNROLL
    for (i32 r = 0; r < ROWS; r++) {
        if (y + r < height) {
            SUM beside = left[row + r];
            store_4(out + (u64)(y + r) * args.out_pitch + x, base[0] + beside + v[r][0], base[1] + beside + v[r][1],
                    base[2] + beside + v[r][2], base[3] + beside + v[r][3]);
        }
    }
}
