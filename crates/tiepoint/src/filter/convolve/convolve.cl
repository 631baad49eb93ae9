// The product of a column and a row of weights: down the columns, then along the row, each from its first weight on.

#if UP + DOWN <= 64
#define UNROLL_TAPS UNROLL
#else
#define UNROLL_TAPS _Pragma("unroll 8")
#endif

FUNCTION void down(MID v[PLANES][V][2], const Column *column, i32 y, const i32 kind) {
    // The pixel that each output reads at this weight; at the next weight it reads that of the output below it.
    MID rows[V][2];
    UNROLL
    for (i32 r = 0; r < V; r++) {
        load(rows[r], column, y - UP + r, kind);
        UNROLL
        for (i32 i = 0; i < 2; i++) v[0][r][i] = COLUMN[0] * rows[r][i];
    }
    UNROLL_TAPS
    for (i32 k = 1; k <= UP + DOWN; k++) {
        UNROLL
        for (i32 r = 1; r < V; r++) {
            UNROLL
            for (i32 i = 0; i < 2; i++) rows[r - 1][i] = rows[r][i];
        }
        load(rows[V - 1], column, y - UP + k + V - 1, kind);
        UNROLL
        for (i32 r = 0; r < V; r++) {
            UNROLL
            for (i32 i = 0; i < 2; i++) v[0][r][i] = FMA(COLUMN[k], rows[r][i], v[0][r][i]);
        }
    }
}

#ifdef FUSED
FUNCTION void along(OUT out[4], MID w[PLANES][WINDOW]) {
    UNROLL
    for (i32 i = 0; i < 4; i++) {
        f32 sum = ROW[0] * w[0][HALO_LEFT + i - LEFT];
        UNROLL
        for (i32 k = 1; k <= (LEFT + RIGHT) / CHANNELS; k++) {
            sum = FMA(ROW[k], w[0][HALO_LEFT + i - LEFT + k * CHANNELS], sum);
        }
        out[i] = FINISH(sum);
    }
}
#else
// The sum along a row about element x.
FUNCTION MID far(const GLOBAL MID *line, i32 x, i32 row) {
    f32 sum = 0.0f;
    for (i32 k = 0; k <= (LEFT + RIGHT) / CHANNELS; k++) {
        i32 at = border_element(x - LEFT + k * CHANNELS, row);
        f32 value = at < 0 ? 0.0f : line[at];
        sum = k == 0 ? ROW[0] * value : FMA(ROW[k], value, sum);
    }
    return sum;
}
#endif
