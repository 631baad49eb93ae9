// A Gauss-Newton step: improve.rs and the steps of residual.rs, in their order.

// What a match adds to the sums of the system.
#if KIND == HOMOGRAPHY
FUNCTION void add_term(const f64 *h, f64 x, f64 y, f64 xb, f64 yb, f64 limit, f64 *sums) {
    f64 w = h[6] * x + h[7] * y + h[8];
    f64 u = (h[0] * x + h[1] * y + h[2]) / w, v = (h[3] * x + h[4] * y + h[5]) / w;
    f64 p = xb - u, q = yb - v;
    f64 share = (p * p + q * q) / limit;
    if (!(w > 0.0 && 1.0 > share)) return;
    f64 root = 1.0 - share, weight = root * root / w;
    f64 s = weight / w;
    f64 outer[6] = {s * x * x, s * x * y, s * x, s * y * y, s * y, s}, by[3] = {x, y, 1.0};
    f64 far = u * u + v * v, along = u * p + v * q;
    f64 wp = weight * p, wq = weight * q, wa = -(weight * along);
    UNROLL
    for (i32 k = 0; k < 6; k++) {
        sums[k] = sums[k] + outer[k];
        sums[6 + k] = sums[6 + k] + u * outer[k];
        sums[12 + k] = sums[12 + k] + v * outer[k];
        sums[18 + k] = sums[18 + k] + far * outer[k];
    }
    UNROLL
    for (i32 k = 0; k < 3; k++) {
        sums[24 + k] = sums[24 + k] + wp * by[k];
        sums[27 + k] = sums[27 + k] + wq * by[k];
        sums[30 + k] = sums[30 + k] + wa * by[k];
    }
}
#else
FUNCTION void add_term(const f64 *f, f64 x, f64 y, f64 u, f64 v, f64 limit, f64 *sums) {
    f64 l0 = f[0] * x + f[1] * y + f[2], l1 = f[3] * x + f[4] * y + f[5];
    f64 m0 = f[0] * u + f[3] * v + f[6], m1 = f[1] * u + f[4] * v + f[7];
    f64 norm = l0 * l0 + l1 * l1 + (m0 * m0 + m1 * m1);
    f64 error = u * l0 + v * l1 + (f[6] * x + f[7] * y + f[8]);
    f64 share = error * error / (limit * norm);
    if (!(1.0 > share)) return;
    f64 root = 1.0 - share, weight = root * root / norm, slope = error / norm;
    f64 j[9];
    j[0] = u * x - slope * (l0 * x + m0 * u);
    j[1] = u * y - slope * (l0 * y + m1 * u);
    j[2] = u - slope * l0;
    j[3] = v * x - slope * (l1 * x + m0 * v);
    j[4] = v * y - slope * (l1 * y + m1 * v);
    j[5] = v - slope * l1;
    j[6] = x - slope * m0;
    j[7] = y - slope * m1;
    j[8] = 1.0;
    i32 at = 0;
    UNROLL
    for (i32 r = 0; r < 9; r++) {
        f64 weighted = weight * j[r];
        UNROLL
        for (i32 c = 0; c < 9; c++) {
            if (c < r) continue;
            sums[at] = sums[at] + weighted * j[c];
            at++;
        }
        sums[45 + r] = sums[45 + r] + weighted * -error;
    }
}
#endif

// The system of the sums: nine rows, and the right side.
FUNCTION void system_of(const LOCAL_POINTER f64 *sums, f64 *matrix, f64 *right) {
#if KIND == HOMOGRAPHY
    for (i32 i = 0; i < 81; i++) matrix[i] = 0.0;
    for (i32 r = 0; r < 3; r++) {
        for (i32 c = 0; c < 3; c++) {
            i32 low = r < c ? r : c, high = r < c ? c : r;
            i32 at = low == 0 ? high : low + high + 1;
            matrix[9 * r + c] = sums[at];
            matrix[9 * (3 + r) + 3 + c] = sums[at];
            matrix[9 * r + 6 + c] = -sums[6 + at];
            matrix[9 * (6 + c) + r] = -sums[6 + at];
            matrix[9 * (3 + r) + 6 + c] = -sums[12 + at];
            matrix[9 * (6 + c) + 3 + r] = -sums[12 + at];
            matrix[9 * (6 + r) + 6 + c] = sums[18 + at];
        }
    }
    for (i32 r = 0; r < 9; r++) right[r] = sums[24 + r];
#else
    i32 at = 0;
    for (i32 r = 0; r < 9; r++) {
        for (i32 c = r; c < 9; c++) {
            matrix[9 * r + c] = sums[at];
            matrix[9 * c + r] = sums[at];
            at++;
        }
        right[r] = sums[45 + r];
    }
#endif
}

FUNCTION f64 trace_of(const f64 *matrix) {
    f64 trace = matrix[0];
    for (i32 i = 1; i < 9; i++) trace = trace + matrix[10 * i];
    return trace;
}

// A term along the model itself, whose scale is free, keeps the system regular.
FUNCTION void hold_scale(const f64 *m, f64 *matrix) {
    f64 square = m[0] * m[0], trace = trace_of(matrix);
    for (i32 i = 1; i < 9; i++) square = square + m[i] * m[i];
    f64 hold = trace / (square > SMALLEST ? square : SMALLEST);
    for (i32 r = 0; r < 9; r++)
        for (i32 c = 0; c < 9; c++) matrix[9 * r + c] = matrix[9 * r + c] + hold * m[r] * m[c];
}

// The model one step on; 0 where there is none.
#if KIND == HOMOGRAPHY
FUNCTION i32 step_from(const LOCAL_POINTER f64 *sums, f64 *m) {
    f64 matrix[81], right[9];
    system_of(sums, matrix, right);
    hold_scale(m, matrix);
    if (!solve(matrix, right, 9)) return 0;
    for (i32 i = 0; i < 9; i++) m[i] = m[i] + right[i];
    return is_finite3(m);
}
#elif KIND == FUNDAMENTAL
FUNCTION i32 step_from(const LOCAL_POINTER f64 *sums, f64 *m) {
    f64 matrix[81], right[10], bordered[100], adjugate[9];
    system_of(sums, matrix, right);
    f64 scale = trace_of(matrix);
    hold_scale(m, matrix);
    adjugate3(m, adjugate);
    for (i32 r = 0; r < 9; r++) {
        for (i32 c = 0; c < 9; c++) bordered[10 * r + c] = matrix[9 * r + c];
        bordered[10 * r + 9] = adjugate[3 * (r % 3) + r / 3] * scale;
        bordered[90 + r] = bordered[10 * r + 9];
    }
    bordered[99] = 0.0;
    right[9] = -determinant3(m) * scale;
    if (!solve(bordered, right, 10)) return 0;
    for (i32 i = 0; i < 9; i++) m[i] = m[i] + right[i];
    rank_two3(m);
    return unit3(m) && is_finite3(m);
}
#else
// `from_b` and `from_a` make a fundamental matrix of an essential one.
FUNCTION void fundamental_of(const f64 *from_b, const f64 *e, const f64 *from_a, f64 *f) {
    f64 half_way[9];
    product3(from_b, e, half_way);
    product3(half_way, from_a, f);
}

FUNCTION i32 step_from(const LOCAL_POINTER f64 *sums, const f64 *from_b, const f64 *from_a, f64 *m, f64 *e) {
    f64 matrix[81], right[9], basis[6][9], row[9], a[36], b[6], skew[9], turned[9], turn[9], other[9];
    system_of(sums, matrix, right);
    for (i32 i = 0; i < 6; i++) {
        f64 x = i % 3 == 0 ? 1.0 : 0.0, y = i % 3 == 1 ? 1.0 : 0.0, z = i % 3 == 2 ? 1.0 : 0.0;
        skew3(x, y, z, skew);
        if (i < 3) product3(skew, e, turned);
        else product3(e, skew, turned);
        fundamental_of(from_b, turned, from_a, basis[i]);
    }
    for (i32 i = 0; i < 6; i++) {
        for (i32 c = 0; c < 9; c++) {
            row[c] = basis[i][0] * matrix[c];
            for (i32 r = 1; r < 9; r++) row[c] = row[c] + basis[i][r] * matrix[9 * r + c];
        }
        for (i32 j = 0; j < 6; j++) {
            f64 sum = row[0] * basis[j][0];
            for (i32 c = 1; c < 9; c++) sum = sum + row[c] * basis[j][c];
            a[6 * i + j] = sum;
        }
        b[i] = basis[i][0] * right[0];
        for (i32 r = 1; r < 9; r++) b[i] = b[i] + basis[i][r] * right[r];
        a[7 * i] = a[7 * i] * (1.0 + 1e-6);
    }
    if (!solve(a, b, 6)) return 0;
    cayley3(b, turn);
    product3(turn, e, other);
    cayley3(b + 3, turn);
    product3(other, turn, e);
    fundamental_of(from_b, e, from_a, m);
    return is_finite3(m);
}
#endif
