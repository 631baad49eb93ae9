// The seven-point method of seven_point.rs, in its order.

// Reflects nine numbers; those before k do not change.
FUNCTION void reflect(const f64 *mirror, f64 scale, i32 k, f64 *row) {
    f64 along = mirror[k] * row[k];
    UNROLL
    for (i32 i = k + 1; i < 9; i++) along = along + mirror[i] * row[i];
    along = along * scale;
    UNROLL
    for (i32 i = k; i < 9; i++) row[i] = row[i] - along * mirror[i];
}

// The 9 - ROWS vectors that span the null space of the ROWS rows, which are overwritten.
FUNCTION void null_space(f64 rows[ROWS][9], f64 space[9 - ROWS][9]) {
    f64 scales[ROWS];
    UNROLL
    for (i32 k = 0; k < ROWS; k++) {
        f64 square = rows[k][k] * rows[k][k];
        UNROLL
        for (i32 i = k + 1; i < 9; i++) square = square + rows[k][i] * rows[k][i];
        f64 norm = sqrt(square), first = rows[k][k];
        scales[k] = 1.0 / (norm * (norm + fabs(first)));
        rows[k][k] = first + copysign(norm, first);
        UNROLL
        for (i32 r = k + 1; r < ROWS; r++) reflect(rows[k], scales[k], k, rows[r]);
    }
    UNROLL
    for (i32 n = 0; n < 9 - ROWS; n++) {
        UNROLL
        for (i32 i = 0; i < 9; i++) space[n][i] = i == ROWS + n ? 1.0 : 0.0;
        UNROLL
        for (i32 k = ROWS - 1; k >= 0; k--) reflect(rows[k], scales[k], k, space[n]);
    }
}

FUNCTION void epipolar_row(const f64 *a, const f64 *b, f64 *row) {
    f64 x = a[0], y = a[1], u = b[0], v = b[1];
    row[0] = u * x;
    row[1] = u * y;
    row[2] = u;
    row[3] = v * x;
    row[4] = v * y;
    row[5] = v;
    row[6] = x;
    row[7] = y;
    row[8] = 1.0;
}

// Whether n points can lie in front of both cameras.
FUNCTION i32 oriented(const f64 *f, f64 (*a)[2], f64 (*b)[2], i32 n) {
    f64 e[3];
    e[0] = (f[4] * f[8] - f[5] * f[7]) * 0.617 + (f[5] * f[6] - f[3] * f[8]) * 0.523 + (f[3] * f[7] - f[4] * f[6]) * 0.588;
    e[1] = (f[2] * f[7] - f[1] * f[8]) * 0.617 + (f[0] * f[8] - f[2] * f[6]) * 0.523 + (f[1] * f[6] - f[0] * f[7]) * 0.588;
    e[2] = (f[1] * f[5] - f[2] * f[4]) * 0.617 + (f[2] * f[3] - f[0] * f[5]) * 0.523 + (f[0] * f[4] - f[1] * f[3]) * 0.588;
    i32 positive = 1, negative = 1;
    for (i32 i = 0; i < n; i++) {
        f64 x = a[i][0], y = a[i][1], u = b[i][0], v = b[i][1];
        f64 l0 = f[0] * x + f[1] * y + f[2], l1 = f[3] * x + f[4] * y + f[5], l2 = f[6] * x + f[7] * y + f[8];
        f64 t0 = e[1] - e[2] * v, t1 = e[2] * u - e[0], t2 = e[0] * v - e[1] * u;
        f64 sign = t0 * l0 + t1 * l1 + t2 * l2;
        positive = positive && sign > 0.0;
        negative = negative && 0.0 > sign;
    }
    return positive || negative;
}

#if KIND == FUNDAMENTAL
FUNCTION f64 determinant_of(const f64 *m) {
    return m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) + m[2] * (m[3] * m[7] - m[4] * m[6]);
}

// The roots of t^3 + a t^2 + b t + c; those that do not exist are NaN.
FUNCTION void roots_of(f64 a, f64 b, f64 c, f64 *roots) {
    const f64 third = 1.0 / 3.0;
    f64 shift = a * -third, p = b + shift * a, q = ((shift + a) * shift + b) * shift + c;
    f64 square = 0.0 > p ? p * -third : 0.0;
    f64 beyond = q * q > square * square * square * 4.0 ? (fabs(q) + 2.0) * third : 0.0;
    f64 u = copysign(sqrt(square) * 2.0 + beyond, -q);
    for (i32 i = 0; i < 20; i++) u = u - ((u * u + p) * u + q) / (u * u * 3.0 + p);
    f64 first = u + shift, half_sum = (a + first) * -0.5, product = b + first * (a + first);
    f64 wing = sqrt(half_sum * half_sum - product);
    f64 second = half_sum + copysign(wing, half_sum);
    roots[0] = first;
    roots[1] = second;
    roots[2] = product / second;
    for (i32 r = 0; r < 3; r++) {
        f64 t = roots[r];
        for (i32 i = 0; i < 2; i++) t = t - (((t + a) * t + b) * t + c) / ((t * 3.0 + a * 2.0) * t + b);
        roots[r] = t;
    }
}

// The fundamental matrices of seven matches; returns a bit for each one that exists.
FUNCTION u32 seven_point(f64 (*a)[2], f64 (*b)[2], f64 models[3][9]) {
    f64 rows[ROWS][9], space[2][9], first[9], second[9], plus[9], minus[9], t[3];
    for (i32 i = 0; i < 7; i++) epipolar_row(a[i], b[i], rows[i]);
    null_space(rows, space);
    f64 df = determinant_of(space[0]), dg = determinant_of(space[1]);
    i32 swapped = fabs(df) > fabs(dg);
    for (i32 i = 0; i < 9; i++) {
        first[i] = swapped ? space[1][i] : space[0][i];
        second[i] = swapped ? space[0][i] : space[1][i];
        plus[i] = first[i] + second[i];
        minus[i] = first[i] - second[i];
    }
    f64 d0 = swapped ? dg : df, d3 = swapped ? df : dg;
    f64 at_plus = determinant_of(plus), at_minus = determinant_of(minus);
    f64 d2 = (at_plus + at_minus) * 0.5 - d0, d1 = (at_plus - at_minus) * 0.5 - d3;
    roots_of(d2 / d3, d1 / d3, d0 / d3, t);
    u32 found = 0;
    for (i32 r = 0; r < 3; r++) {
        for (i32 i = 0; i < 9; i++) models[r][i] = first[i] + t[r] * second[i];
        if (1e6 > fabs(t[r]) && oriented(models[r], a, b, 7)) found |= 1u << r;
    }
    return found;
}
#endif
