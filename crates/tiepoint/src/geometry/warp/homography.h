// Places of a homography: places.rs.

typedef struct {
    f64 u, v;
    i32 inside;
} Place;

// The place in the input of output pixel (x, y); m is the matrix row by row.
FUNCTION Place place(i32 x, i32 y, i32 width, i32 height, const f64 *m) {
    Place p;
    f64 at = (f64)x, line = (f64)y;
    f64 a = m[1] * line + m[2], b = m[4] * line + m[5], c = m[7] * line + m[8];
    f64 w = m[6] * at + c;
    // A negative denominator lies beyond the horizon where the last element is 1.
    f64 front = m[8] == 1.0 ? w : (w < 0.0 ? -w : w);
    p.u = m[0] * at + a;
    p.v = m[3] * at + b;
    // An affine map needs no divisions, half of the arithmetic.
    if (w != 1.0) {
        p.u /= w;
        p.v /= w;
    }
    // NaN fails every comparison.
    p.inside = front > 1e-12 && p.u >= -0.5 && p.v >= -0.5 && p.u < (f64)width - 0.5 && p.v < (f64)height - 0.5;
    return p;
}
