// The determinant of the Hessian from three sums of a column: the arithmetic of mod.rs.

// Rows -2 to 2; rows -4 to 4 less three times rows -1 to 1; rows -3 to -1 less rows 1 to 3.
#define FIVE 0
#define LOBES 1
#define HALVES 2

FUNCTION void down(MID v[PLANES][V][2], const Column *column, i32 y, const i32 kind) {
    MID rows[V + 8][2];
    UNROLL
    for (i32 j = 0; j < V + 8; j++) load(rows[j], column, y - 4 + j, kind);
    UNROLL
    for (i32 r = 0; r < V; r++) {
        UNROLL
        for (i32 i = 0; i < 2; i++) {
#define AT(j) rows[r + (j)][i]
            MID middle = AT(3) + AT(4) + AT(5);
            v[FIVE][r][i] = AT(2) + middle + AT(6);
            v[LOBES][r][i] = AT(0) + AT(1) + AT(2) - 2.0f * middle + AT(6) + AT(7) + AT(8);
            v[HALVES][r][i] = AT(1) + AT(2) + AT(3) - (AT(5) + AT(6) + AT(7));
#undef AT
        }
    }
}

FUNCTION void along(OUT out[4], MID w[PLANES][WINDOW]) {
    UNROLL
    for (i32 i = 0; i < 4; i++) {
        // HALO_LEFT is the filters' reach.
        MID middle = w[FIVE][i + 3] + w[FIVE][i + 4] + w[FIVE][i + 5];
        MID sides = w[FIVE][i] + w[FIVE][i + 1] + w[FIVE][i + 2] + w[FIVE][i + 6] + w[FIVE][i + 7] + w[FIVE][i + 8];
        f32 dxx = (sides - 2.0f * middle) * SCALE;
        MID across = w[LOBES][i + 2] + w[LOBES][i + 3] + w[LOBES][i + 4] + w[LOBES][i + 5] + w[LOBES][i + 6];
        f32 dyy = across * SCALE;
        MID right = w[HALVES][i + 5] + w[HALVES][i + 6] + w[HALVES][i + 7];
        MID left = w[HALVES][i + 1] + w[HALVES][i + 2] + w[HALVES][i + 3];
        f32 dxy = (right - left) * SCALE;
        out[i] = FMA(-WEIGHT, dxy * dxy, dxx * dyy);
    }
}
