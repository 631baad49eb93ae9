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

// The right singular vector of the smallest singular value of a 3x3 matrix.
FUNCTION void last_singular3(const f64 *m, f64 *out) {
    f64 columns[9], v[9] = {1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0};
    for (i32 i = 0; i < 9; i++) columns[i] = m[3 * (i % 3) + i / 3];
    for (i32 sweep = 0; sweep < 30; sweep++) {
        i32 done = 1;
        for (i32 pair = 0; pair < 3; pair++) {
            f64 *a = columns + (pair == 2 ? 3 : 0), *b = columns + (pair == 0 ? 3 : 6);
            f64 *va = v + (pair == 2 ? 3 : 0), *vb = v + (pair == 0 ? 3 : 6);
            f64 xx = dot3(a, a), xy = dot3(a, b), yy = dot3(b, b);
            if (!(xy * xy > xx * yy * 1e-30)) continue;
            done = 0;
            f64 theta = (yy - xx) / (2.0 * xy);
            f64 t = copysign(1.0, theta) / (fabs(theta) + sqrt(theta * theta + 1.0));
            f64 c = 1.0 / sqrt(t * t + 1.0);
            f64 s = t * c;
            for (i32 k = 0; k < 3; k++) {
                f64 x = a[k], y = b[k];
                a[k] = c * x - s * y;
                b[k] = s * x + c * y;
                x = va[k];
                y = vb[k];
                va[k] = c * x - s * y;
                vb[k] = s * x + c * y;
            }
        }
        if (done) break;
    }
    i32 least = 0;
    for (i32 i = 1; i < 3; i++)
        if (dot3(columns + 3 * i, columns + 3 * i) < dot3(columns + 3 * least, columns + 3 * least)) least = i;
    for (i32 k = 0; k < 3; k++) out[k] = v[3 * least + k];
}

// The nearest matrix of rank 2: model.rs.
FUNCTION void rank_two3(f64 *m) {
    f64 e[3];
    last_singular3(m, e);
    for (i32 i = 0; i < 3; i++) {
        f64 along = dot3(m + 3 * i, e);
        for (i32 j = 0; j < 3; j++) m[3 * i + j] = m[3 * i + j] - along * e[j];
    }
}
