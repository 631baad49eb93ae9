// 3x3 matrices, row by row in nine numbers: what matrix.rs does, in its order.

FUNCTION f64 determinant3(const f64 *m) {
    f64 x = m[4] * m[8] - m[5] * m[7], y = m[5] * m[6] - m[3] * m[8], z = m[3] * m[7] - m[4] * m[6];
    return m[0] * x + m[1] * y + m[2] * z;
}

FUNCTION void cross3(const f64 *a, const f64 *b, f64 *out) {
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

FUNCTION f64 dot3(const f64 *a, const f64 *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

FUNCTION void product3(const f64 *a, const f64 *b, f64 *out) {
    for (i32 i = 0; i < 3; i++)
        for (i32 j = 0; j < 3; j++)
            out[3 * i + j] = a[3 * i] * b[j] + a[3 * i + 1] * b[3 + j] + a[3 * i + 2] * b[6 + j];
}

FUNCTION void times3(const f64 *m, const f64 *v, f64 *out) {
    for (i32 i = 0; i < 3; i++) out[i] = m[3 * i] * v[0] + m[3 * i + 1] * v[1] + m[3 * i + 2] * v[2];
}

// The transposed cofactors.
FUNCTION void adjugate3(const f64 *m, f64 *out) {
    f64 row[3];
    for (i32 i = 0; i < 3; i++) {
        cross3(m + 3 * ((i + 1) % 3), m + 3 * ((i + 2) % 3), row);
        for (i32 j = 0; j < 3; j++) out[3 * j + i] = row[j];
    }
}

FUNCTION i32 is_finite3(const f64 *m) {
    i32 finite = 1;
    for (i32 i = 0; i < 9; i++) finite = finite && IS_FINITE_F64(m[i]);
    return finite;
}

// Divides by the Frobenius norm; returns 0 if that is 0 or not finite.
FUNCTION i32 unit3(f64 *m) {
    f64 square = m[0] * m[0];
    for (i32 i = 1; i < 9; i++) square = square + m[i] * m[i];
    f64 norm = sqrt(square);
    if (!(norm > 0.0 && IS_FINITE_F64(norm))) return 0;
    for (i32 i = 0; i < 9; i++) m[i] = m[i] / norm;
    return 1;
}

// v x w as a matrix times w.
FUNCTION void skew3(f64 x, f64 y, f64 z, f64 *out) {
    out[0] = 0.0;
    out[1] = -z;
    out[2] = y;
    out[3] = z;
    out[4] = 0.0;
    out[5] = -x;
    out[6] = -y;
    out[7] = x;
    out[8] = 0.0;
}

// The rotation about `a` by 2 atan(|a| / 2).
FUNCTION void cayley3(const f64 *a, f64 *out) {
    f64 x = 0.5 * a[0], y = 0.5 * a[1], z = 0.5 * a[2];
    f64 v[3] = {x, y, z}, s[9], squared[9];
    skew3(x, y, z, s);
    f64 by = 2.0 / (1.0 + dot3(v, v));
    product3(s, s, squared);
    for (i32 i = 0; i < 9; i++) out[i] = (i % 4 == 0 ? 1.0 : 0.0) + by * (s[i] + squared[i]);
}
