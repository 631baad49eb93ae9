// Symmetric taps, centre and one side, in the order of rows.rs: f32 with FMA, or integers in units of 1/256 (bytes.rs).

#ifdef WHOLE_WINDOW
FUNCTION void down(MID v[PLANES][V][2], const Column *column, i32 y, const i32 kind) {
    // All rows are requested before the first sum needs them.
    MID rows[UP + V + DOWN][2];
    UNROLL
    for (i32 r = 0; r < UP + V + DOWN; r++) load(rows[r], column, y - UP + r, kind);
    UNROLL
    for (i32 r = 0; r < V; r++) {
        UNROLL
        for (i32 i = 0; i < 2; i++) {
            MID sum = rows[UP + r][i] * TAPS[0];
            UNROLL
            for (i32 k = 1; k <= UP; k++) {
                sum = MULTIPLY_ADD(TAPS[k], rows[UP + r - k][i] + rows[UP + r + k][i], sum);
            }
            v[0][r][i] = sum;
        }
    }
}
#else
#if UP <= 32
#define UNROLL_TAPS UNROLL
#else
// With this factor the rows kept in registers need not be moved from register to register.
#define UNROLL_TAPS _Pragma("unroll 8")
#endif

FUNCTION void down(MID v[PLANES][V][2], const Column *column, i32 y, const i32 kind) {
    // The rows k above and k below each of the V outputs; at the next k each output takes over those of a neighbour.
    MID low[V][2], high[V][2];
    UNROLL
    for (i32 r = 0; r < V; r++) {
        load(low[r], column, y + r, kind);
        UNROLL
        for (i32 i = 0; i < 2; i++) {
            high[r][i] = low[r][i];
            v[0][r][i] = low[r][i] * TAPS[0];
        }
    }
    UNROLL_TAPS
    for (i32 k = 1; k <= UP; k++) {
        UNROLL
        for (i32 r = 1; r < V; r++) {
            UNROLL
            for (i32 i = 0; i < 2; i++) {
                low[V - r][i] = low[V - r - 1][i];
                high[r - 1][i] = high[r][i];
            }
        }
        load(low[0], column, y - k, kind);
        load(high[V - 1], column, y + V - 1 + k, kind);
        UNROLL
        for (i32 r = 0; r < V; r++) {
            UNROLL
            for (i32 i = 0; i < 2; i++) v[0][r][i] = MULTIPLY_ADD(TAPS[k], low[r][i] + high[r][i], v[0][r][i]);
        }
    }
}
#endif

#ifdef FUSED
FUNCTION void along(OUT out[4], MID w[PLANES][WINDOW]) {
    UNROLL
    for (i32 i = 0; i < 4; i++) {
        MID sum = w[0][HALO_LEFT + i] * TAPS[0];
        UNROLL
        for (i32 k = 1; k <= UP; k++) {
            MID both = w[0][HALO_LEFT + i - k * CHANNELS] + w[0][HALO_LEFT + i + k * CHANNELS];
            sum = MULTIPLY_ADD(TAPS[k], both, sum);
        }
        out[i] = FINISH(sum);
    }
}
#else
FUNCTION MID at(const GLOBAL MID *line, i32 x, i32 row) {
    x = border_element(x, row);
    return x < 0 ? 0 : line[x];
}

// The sum along a row about element x.
FUNCTION MID far(const GLOBAL MID *line, i32 x, i32 row) {
    MID sum = line[x] * TAPS[0];
    i32 inside = x >= LEFT && x + RIGHT < row;
    for (i32 k = 1; k <= UP; k++) {
        i32 low = x - k * CHANNELS, high = x + k * CHANNELS;
        MID both = inside ? line[low] + line[high] : at(line, low, row) + at(line, high, row);
        sum = MULTIPLY_ADD(TAPS[k], both, sum);
    }
    return sum;
}
#endif
