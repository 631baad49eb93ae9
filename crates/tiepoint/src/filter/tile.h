// A filter of columns, then rows, in one kernel: each pixel is read once and written once.
//
// A group computes a tile. First its lanes go down the columns, each over V rows of two neighbouring elements, and
// store the sums in local memory, with HALO_LEFT and HALO_RIGHT more elements at the sides; then they go along the
// rows, each computing four elements from a window in registers. A source row serves V outputs from registers, and the
// segments above and below from the first-level cache, so little else than the tile is read from memory. A lane has
// only two elements but many rows: few rows are read twice, and windows are so small that a multiprocessor holds
// several groups, which hide each other's latency. Only tiles at the image's edge apply the border rule.
//
// gpu.rs defines the types IN, OUT, MID (between the passes: f32 or i32) and VECTOR(type), the number PLANES of sums a
// column has, the tile, and the filter's reach UP, DOWN, LEFT, RIGHT. The stage's own text gives READ (an input as
// MID), SKIPPED (an output where the window leaves the image, for Border::Skip), and the functions `down` and `along`.

// Two neighbouring columns of elements.
typedef struct {
    const GLOBAL IN *from;
    i32 pitch, height;
    // The index of each column in a row; -1 if the border rule gives none.
    i32 at[2];
} Column;

// How columns are read, constant when compiled. PLAIN: all rows lie inside the image. ROWS_BY_RULE: rows by the border
// rule. In both, elements lie side by side and aligned. ALL_BY_RULE: rows and elements by the border rule.
#define PLAIN 0
#define ROWS_BY_RULE 1
#define ALL_BY_RULE 2

// The sums of a column at the rows y to y + V - 1.
FUNCTION void down(MID v[PLANES][V][2], const Column *column, i32 y, const i32 kind);
FUNCTION void load(MID v[2], const Column *column, i32 y, const i32 kind) {
    if (kind != PLAIN) y = border_index(y, column->height);
    const GLOBAL IN *row = column->from + (i64)y * column->pitch;
    if (kind != PLAIN && y < 0) {
        v[0] = v[1] = 0;
    } else if (kind != ALL_BY_RULE) {
        PAIR(IN) pixels = *(const GLOBAL PAIR(IN) *)(row + column->at[0]);
        v[0] = READ(pixels.x);
        v[1] = READ(pixels.y);
    } else {
        UNROLL
        for (i32 i = 0; i < 2; i++) v[i] = column->at[i] < 0 ? 0 : READ(row[column->at[i]]);
    }
}

// `down` for the two elements from x on. A column for which the border rule gives no pixel has sums of 0.
FUNCTION void down_by_rule(MID v[PLANES][V][2], const GLOBAL IN *from, i32 x, i32 y, i32 row, i32 height,
                           i32 pitch) {
    Column column;
    column.from = from;
    column.pitch = pitch;
    column.height = height;
    if (x >= 0 && x + 2 <= row) {
        column.at[0] = x;
        if (y >= UP && y + V + DOWN <= height) down(v, &column, y, PLAIN);
        else down(v, &column, y, ROWS_BY_RULE);
        return;
    }
    UNROLL
    for (i32 i = 0; i < 2; i++) column.at[i] = border_element(x + i, row);
    down(v, &column, y, ALL_BY_RULE);
#if BORDER_RULE == ZERO || BORDER_RULE == SKIP
    UNROLL
    for (i32 i = 0; i < PLANES * V * 2; i++) {
        if (column.at[i % 2] < 0) v[i / (V * 2)][i / 2 % V][i % 2] = 0;
    }
#endif
}

FUNCTION void store(GLOBAL OUT *to, const GLOBAL IN *from, const OUT out[4], i32 x, i32 y, i32 row, i32 height) {
    VECTOR(OUT) four;
    four.x = out[0];
    four.y = out[1];
    four.z = out[2];
    four.w = out[3];
#if BORDER_RULE == SKIP
    if (window_leaves(x, y, row, height)) four.x = SKIPPED(from[0]);
    if (window_leaves(x + 1, y, row, height) && x + 1 < row) four.y = SKIPPED(from[1]);
    if (window_leaves(x + 2, y, row, height) && x + 2 < row) four.z = SKIPPED(from[2]);
    if (window_leaves(x + 3, y, row, height) && x + 3 < row) four.w = SKIPPED(from[3]);
#endif
    // Rows are padded to multiples of 128 bytes: beyond the last pixel only padding is overwritten.
    *(GLOBAL VECTOR(OUT) *)to = four;
}

#ifdef FUSED
#define QUADS ((TILE_WIDTH + HALO_LEFT + HALO_RIGHT) / 4)
#define PAIRS (2 * QUADS)
#define WINDOW (HALO_LEFT + 4 + HALO_RIGHT)

// Four outputs; w[plane][HALO_LEFT] is the sum at the first of them.
FUNCTION void along(OUT out[4], MID w[PLANES][WINDOW]);

KERNEL(filter) {
    LOCAL VECTOR(MID) mid[PLANES * TILE_HEIGHT * QUADS];
    const Plane source = args.from_plane, target = args.to_plane;
    i32 left = GROUP_X % args.across * TILE_WIDTH, top = GROUP_X / args.across * TILE_HEIGHT;
    from += source.step * (u64)GROUP_Z;
    to += target.step * (u64)GROUP_Z;
    {
        i32 pair = LANE_X % PAIRS, segment = LANE_X / PAIRS;
        MID v[PLANES][V][2];
        down_by_rule(v, from, left - HALO_LEFT + 2 * pair, top + segment * V, source.row, source.height, source.pitch);
        LOCAL_POINTER PAIR(MID) *sums = (LOCAL_POINTER PAIR(MID) *)mid;
        UNROLL
        for (i32 p = 0; p < PLANES; p++) {
            UNROLL
            for (i32 r = 0; r < V; r++) {
                PAIR(MID) two;
                two.x = v[p][r][0];
                two.y = v[p][r][1];
                sums[(p * TILE_HEIGHT + segment * V + r) * PAIRS + pair] = two;
            }
        }
    }
    BARRIER();
    for (i32 i = LANE_X; i < TILE_HEIGHT * (TILE_WIDTH / 4); i += LANES) {
        i32 line = i / (TILE_WIDTH / 4), at = i % (TILE_WIDTH / 4);
        i32 x = left + 4 * at, y = top + line;
        if (x < target.row && y < target.height) {
            MID w[PLANES][WINDOW];
            UNROLL
            for (i32 p = 0; p < PLANES; p++) {
                UNROLL
                for (i32 q = 0; q < WINDOW / 4; q++) {
                    VECTOR(MID) four = mid[(p * TILE_HEIGHT + line) * QUADS + at + q];
                    w[p][4 * q] = four.x;
                    w[p][4 * q + 1] = four.y;
                    w[p][4 * q + 2] = four.z;
                    w[p][4 * q + 3] = four.w;
                }
            }
            OUT out[4];
            along(out, w);
            store(to + (i64)y * target.pitch + x, from + (i64)y * source.pitch + x, out, x, y, target.row, target.height);
        }
    }
}
#endif
