// Small dense systems: what linear.rs does, in its order.

// Solves a x = b for an n x n matrix in place, row by row; x replaces b. 0 when a pivot vanishes.
FUNCTION i32 solve(f64 *a, f64 *b, i32 n) {
    f64 scale = 0.0;
    for (i32 i = 0; i < n * n; i++) {
        f64 size = fabs(a[i]);
        if (size > scale) scale = size;
    }
    for (i32 c = 0; c < n; c++) {
        i32 pivot = c;
        f64 size = fabs(a[c * n + c]);
        for (i32 r = c + 1; r < n; r++) {
            f64 other = fabs(a[r * n + c]);
            if (other > size) {
                pivot = r;
                size = other;
            }
        }
        if (!(size > scale * 1e-15)) return 0;
        if (pivot != c) {
            for (i32 k = c; k < n; k++) {
                f64 kept = a[c * n + k];
                a[c * n + k] = a[pivot * n + k];
                a[pivot * n + k] = kept;
            }
            f64 kept = b[c];
            b[c] = b[pivot];
            b[pivot] = kept;
        }
        for (i32 r = c + 1; r < n; r++) {
            f64 f = a[r * n + c] / a[c * n + c];
            for (i32 k = c; k < n; k++) a[r * n + k] = a[r * n + k] - f * a[c * n + k];
            b[r] = b[r] - f * b[c];
        }
    }
    i32 finite = 1;
    for (i32 r = n - 1; r >= 0; r--) {
        f64 rest = b[r];
        for (i32 k = r + 1; k < n; k++) rest = rest - a[r * n + k] * b[k];
        b[r] = rest / a[r * n + r];
        finite = finite && b[r] - b[r] == 0.0;
    }
    return finite;
}

// One Jacobi rotation of a symmetric 3x3 matrix; `v` holds the eigenvectors so far as rows.
FUNCTION void rotate3(f64 *a, f64 *v, i32 p, i32 q) {
    if (a[3 * p + q] == 0.0) return;
    f64 theta = (a[3 * q + q] - a[3 * p + p]) / (2.0 * a[3 * p + q]);
    f64 t = copysign(1.0, theta) / (fabs(theta) + sqrt(theta * theta + 1.0));
    f64 c = 1.0 / sqrt(t * t + 1.0);
    f64 s = t * c;
    for (i32 k = 0; k < 3; k++) {
        f64 x = a[3 * k + p], y = a[3 * k + q];
        a[3 * k + p] = c * x - s * y;
        a[3 * k + q] = s * x + c * y;
    }
    for (i32 k = 0; k < 3; k++) {
        f64 x = a[3 * p + k], y = a[3 * q + k];
        a[3 * p + k] = c * x - s * y;
        a[3 * q + k] = s * x + c * y;
        x = v[3 * p + k];
        y = v[3 * q + k];
        v[3 * p + k] = c * x - s * y;
        v[3 * q + k] = s * x + c * y;
    }
}

// The eigenvector of the smallest eigenvalue of a symmetric 3x3 matrix, which is overwritten.
FUNCTION void smallest_eigenvector3(f64 *a, f64 *out) {
    f64 v[9] = {1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0};
    for (i32 sweep = 0; sweep < 30; sweep++) {
        f64 off = a[3] * a[3] + a[6] * a[6] + a[7] * a[7];
        f64 diagonal = a[0] * a[0] + a[4] * a[4] + a[8] * a[8];
        if (!(off > diagonal * 1e-32)) break;
        rotate3(a, v, 0, 1);
        rotate3(a, v, 0, 2);
        rotate3(a, v, 1, 2);
    }
    i32 least = 0;
    for (i32 i = 1; i < 3; i++)
        if (a[4 * i] < a[4 * least]) least = i;
    for (i32 k = 0; k < 3; k++) out[k] = v[3 * least + k];
}

// The nearest matrix of rank 2: model.rs.
FUNCTION void rank_two3(f64 *m) {
    f64 square[9], e[3];
    for (i32 i = 0; i < 3; i++)
        for (i32 j = 0; j < 3; j++)
            square[3 * i + j] = m[i] * m[j] + m[3 + i] * m[3 + j] + m[6 + i] * m[6 + j];
    smallest_eigenvector3(square, e);
    for (i32 i = 0; i < 3; i++) {
        f64 along = dot3(m + 3 * i, e);
        for (i32 j = 0; j < 3; j++) m[3 * i + j] = m[3 * i + j] - along * e[j];
    }
}
