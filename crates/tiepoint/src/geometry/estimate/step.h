// A Gauss-Newton step from a model and its sums to the next: step.rs, in its order.

// The system of the sums: nine rows, and the right side.
FUNCTION void system_of(const LOCAL_POINTER f64 *sums, f64 *matrix, f64 *right) {
#if KIND == HOMOGRAPHY
    for (i32 r = 0; r < 3; r++) {
        for (i32 c = 0; c < 3; c++) {
            i32 low = r < c ? r : c, high = r < c ? c : r;
            const LOCAL_POINTER f64 *at = sums + 1 + (low == 0 ? high : low + high + 1);
            matrix[9 * r + c] = at[0];
            matrix[9 * r + 3 + c] = at[6];
            matrix[9 * (3 + c) + r] = at[6];
            matrix[9 * (3 + r) + 3 + c] = at[12];
            matrix[9 * r + 6 + c] = -at[18];
            matrix[9 * (6 + c) + r] = -at[18];
            matrix[9 * (3 + r) + 6 + c] = -at[24];
            matrix[9 * (6 + c) + 3 + r] = -at[24];
            matrix[9 * (6 + r) + 6 + c] = at[30];
        }
    }
    for (i32 r = 0; r < 9; r++) right[r] = sums[37 + r];
#else
    i32 at = 1;
    for (i32 r = 0; r < 9; r++) {
        for (i32 c = r; c < 9; c++) {
            matrix[9 * r + c] = sums[at];
            matrix[9 * c + r] = sums[at];
            at++;
        }
        right[r] = sums[46 + r];
    }
#endif
}

FUNCTION f64 trace_of(const f64 *matrix) {
    f64 trace = matrix[0];
    for (i32 i = 1; i < 9; i++) trace = trace + matrix[10 * i];
    return trace;
}

// A term along the model itself, whose scale is free, keeps the system regular.
FUNCTION void hold_scale(const f64 *m, f64 *matrix, f64 damping) {
    f64 square = m[0] * m[0], trace = trace_of(matrix);
    for (i32 i = 1; i < 9; i++) square = square + m[i] * m[i];
    f64 hold = trace / (square > SMALLEST ? square : SMALLEST);
    for (i32 r = 0; r < 9; r++) {
        matrix[10 * r] = matrix[10 * r] * (1.0 + damping);
        for (i32 c = 0; c < 9; c++) matrix[9 * r + c] = matrix[9 * r + c] + hold * m[r] * m[c];
    }
}

// Writes the model after one step; returns 0 where there is none.
#if KIND == HOMOGRAPHY
FUNCTION i32 step_from(const LOCAL_POINTER f64 *sums, f64 damping, f64 *m) {
    f64 matrix[81], right[9];
    system_of(sums, matrix, right);
    hold_scale(m, matrix, damping);
    if (!solve(matrix, right, 9)) return 0;
    for (i32 i = 0; i < 9; i++) m[i] = m[i] + right[i];
    return is_finite3(m);
}
#elif KIND == FUNDAMENTAL
FUNCTION i32 step_from(const LOCAL_POINTER f64 *sums, f64 damping, f64 *m) {
    f64 matrix[81], right[10], bordered[100], adjugate[9];
    system_of(sums, matrix, right);
    f64 scale = trace_of(matrix);
    hold_scale(m, matrix, damping);
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

FUNCTION i32 step_from(
    const LOCAL_POINTER f64 *sums, f64 damping, const f64 *from_b, const f64 *from_a, f64 *m, f64 *e) {
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
        a[7 * i] = a[7 * i] * (1.0 + (1e-6 + damping));
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
