// Column sums and differences, then the result of FORM: the arithmetic of mod.rs.

#if FORM == X
#define SUMS 0
#elif FORM == Y
#define DIFFERENCES 0
#else
#define SUMS 0
#define DIFFERENCES 1
#endif

#if PIXEL_IS_FLOAT
FUNCTION MID smooth(MID a, MID b, MID c) { return FMA(2.0f, b, a + c); }
FUNCTION PIXEL magnitude(MID x, MID y) { return SQRT(FMA(x, x, y * y)); }
#else
FUNCTION MID smooth(MID a, MID b, MID c) { return a + 2 * b + c; }
// The root truncated to a whole number: from the root in f32, whose error is less than 1.
FUNCTION PIXEL magnitude(MID x, MID y) {
    u64 square = (u64)((i64)x * x) + (u64)((i64)y * y);
    u64 root = (u64)SQRT((f32)square);
    if (root * root > square) root--;
    if ((root + 1) * (root + 1) <= square) root++;
    return (PIXEL)(root < (u64)WHITE ? root : (u64)WHITE);
}
#endif

FUNCTION void down(MID v[PLANES][V][2], const Column *column, i32 y, const i32 kind) {
    MID above[2], centre[2], below[2];
    load(above, column, y - 1, kind);
    load(centre, column, y, kind);
    UNROLL
    for (i32 r = 0; r < V; r++) {
        load(below, column, y + r + 1, kind);
        UNROLL
        for (i32 i = 0; i < 2; i++) {
#ifdef SUMS
            v[SUMS][r][i] = smooth(above[i], centre[i], below[i]);
#endif
#ifdef DIFFERENCES
            v[DIFFERENCES][r][i] = below[i] - above[i];
#endif
            above[i] = centre[i];
            centre[i] = below[i];
        }
    }
}

FUNCTION void along(OUT out[4], MID w[PLANES][WINDOW]) {
    UNROLL
    for (i32 i = 0; i < 4; i++) {
        i32 at = HALO_LEFT + i;
#ifdef SUMS
        MID x = w[SUMS][at + CHANNELS] - w[SUMS][at - CHANNELS];
#endif
#ifdef DIFFERENCES
        MID y = smooth(w[DIFFERENCES][at - CHANNELS], w[DIFFERENCES][at], w[DIFFERENCES][at + CHANNELS]);
#endif
#if FORM == X
        out[i] = (OUT)x;
#elif FORM == Y
        out[i] = (OUT)y;
#else
        out[i] = magnitude(x, y);
#endif
    }
}
