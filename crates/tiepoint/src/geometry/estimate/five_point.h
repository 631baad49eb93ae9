// The five-point method of five_point.rs, in its order. QUADRATIC and CUBIC are its tables, CELLS and ROOT_STEPS its
// constants.

FUNCTION void add_quadratic(f64 *sum, const f64 *a, const f64 *b) {
    for (i32 i = 0; i < 4; i++)
        for (i32 j = 0; j < 4; j++) sum[QUADRATIC[4 * i + j]] = sum[QUADRATIC[4 * i + j]] + a[i] * b[j];
}

FUNCTION void add_cubic(f64 *sum, const f64 *a, const f64 *b) {
    for (i32 i = 0; i < 10; i++)
        for (i32 j = 0; j < 4; j++) sum[CUBIC[4 * i + j]] = sum[CUBIC[4 * i + j]] + a[i] * b[j];
}

// The ten cubics of the elements of E, four coefficients each.
FUNCTION void constraints_of(f64 e[9][4], f64 all[10][20]) {
    f64 lambda[9][10], minor[10], negated[4];
    for (i32 i = 0; i < 3; i++) {
        for (i32 j = i; j < 3; j++) {
            for (i32 m = 0; m < 10; m++) lambda[3 * i + j][m] = 0.0;
            for (i32 k = 0; k < 3; k++) add_quadratic(lambda[3 * i + j], e[3 * i + k], e[3 * j + k]);
            for (i32 m = 0; m < 10; m++) lambda[3 * j + i][m] = lambda[3 * i + j][m];
        }
    }
    for (i32 m = 0; m < 10; m++) {
        f64 half_trace = (lambda[0][m] + lambda[4][m] + lambda[8][m]) * 0.5;
        for (i32 i = 0; i < 3; i++) lambda[4 * i][m] = lambda[4 * i][m] - half_trace;
    }
    for (i32 r = 0; r < 10; r++)
        for (i32 m = 0; m < 20; m++) all[r][m] = 0.0;
    for (i32 i = 0; i < 3; i++)
        for (i32 j = 0; j < 3; j++)
            for (i32 k = 0; k < 3; k++) add_cubic(all[3 * i + j], lambda[3 * i + k], e[3 * k + j]);
    for (i32 c = 0; c < 3; c++) {
        i32 d = (c + 1) % 3, f = (c + 2) % 3;
        for (i32 m = 0; m < 10; m++) minor[m] = 0.0;
        add_quadratic(minor, e[3 + d], e[6 + f]);
        for (i32 m = 0; m < 4; m++) negated[m] = -e[3 + f][m];
        add_quadratic(minor, negated, e[6 + d]);
        add_cubic(all[9], minor, e[c]);
    }
}

// The last six rows of the inverse of the first ten columns times the others.
FUNCTION void reduce(f64 c[10][20], f64 rows[6][10]) {
    f64 mirror[10];
    for (i32 k = 0; k < 10; k++) {
        f64 square = c[k][k] * c[k][k];
        for (i32 r = k + 1; r < 10; r++) square = square + c[r][k] * c[r][k];
        f64 norm = sqrt(square), first = c[k][k];
        f64 scale = 1.0 / (norm * (norm + fabs(first)));
        mirror[k] = first + copysign(norm, first);
        for (i32 r = k + 1; r < 10; r++) mirror[r] = c[r][k];
        for (i32 j = k; j < 20; j++) {
            f64 along = mirror[k] * c[k][j];
            for (i32 r = k + 1; r < 10; r++) along = along + mirror[r] * c[r][j];
            along = along * scale;
            for (i32 r = k; r < 10; r++) c[r][j] = c[r][j] - along * mirror[r];
        }
    }
    for (i32 r = 9; r >= 4; r--) {
        for (i32 j = 0; j < 10; j++) {
            f64 rest = c[r][10 + j];
            for (i32 k = r + 1; k < 10; k++) rest = rest - c[r][k] * rows[k - 4][j];
            rows[r - 4][j] = rest / c[r][r];
        }
    }
}

// An equation p(z) x + q(z) y + r(z) = 0: four, four and five coefficients.
FUNCTION void equation_of(const f64 *e, const f64 *f, f64 *x, f64 *y, f64 *one) {
    for (i32 part = 0; part < 2; part++) {
        i32 at = 3 * part;
        f64 *to = part == 0 ? x : y;
        to[0] = e[at + 2];
        to[1] = e[at + 1] - f[at + 2];
        to[2] = e[at] - f[at + 1];
        to[3] = -f[at];
    }
    one[0] = e[9];
    one[1] = e[8] - f[9];
    one[2] = e[7] - f[8];
    one[3] = e[6] - f[7];
    one[4] = -f[6];
}

// Adds the product of two polynomials, the first times `sign`.
FUNCTION void add_product(f64 *sum, const f64 *a, i32 na, f64 sign, const f64 *b, i32 nb) {
    for (i32 i = 0; i < na; i++) {
        f64 factor = sign < 0.0 ? -a[i] : a[i];
        for (i32 j = 0; j < nb; j++) sum[i + j] = sum[i + j] + factor * b[j];
    }
}

FUNCTION void minor_of(const f64 *p, const f64 *q, const f64 *r, const f64 *s, f64 *sum) {
    for (i32 i = 0; i < 8; i++) sum[i] = 0.0;
    add_product(sum, p, 4, 1.0, q, 5);
    add_product(sum, r, 5, -1.0, s, 4);
}

// Five matches reduced to a null space, three equations and a polynomial.
typedef struct {
    f64 space[4][9], x[3][4], y[3][4], one[3][5], polynomial[11];
} Reduced;

FUNCTION void reduced_of(f64 (*a)[2], f64 (*b)[2], Reduced *out) {
    f64 rows[ROWS][9], e[9][4], all[10][20], left[6][10], minor[8], last[7];
    for (i32 i = 0; i < 5; i++) epipolar_row(a[i], b[i], rows[i]);
    null_space(rows, out->space);
    for (i32 i = 0; i < 9; i++)
        for (i32 k = 0; k < 4; k++) e[i][k] = out->space[k][i];
    constraints_of(e, all);
    reduce(all, left);
    for (i32 i = 0; i < 3; i++) equation_of(left[2 * i], left[2 * i + 1], out->x[i], out->y[i], out->one[i]);
    for (i32 i = 0; i < 7; i++) last[i] = 0.0;
    add_product(last, out->x[1], 4, 1.0, out->y[2], 4);
    add_product(last, out->y[1], 4, -1.0, out->x[2], 4);
    for (i32 i = 0; i < 11; i++) out->polynomial[i] = 0.0;
    minor_of(out->y[1], out->one[2], out->one[1], out->y[2], minor);
    add_product(out->polynomial, out->x[0], 4, 1.0, minor, 8);
    minor_of(out->x[1], out->one[2], out->one[1], out->x[2], minor);
    add_product(out->polynomial, out->y[0], 4, -1.0, minor, 8);
    add_product(out->polynomial, out->one[0], 5, 1.0, last, 7);
}

// The value of the polynomial, or of the one with its coefficients reversed.
FUNCTION f64 horner(const f64 *c, i32 reversed, f64 z) {
    f64 sum = reversed ? c[0] : c[10];
    for (i32 i = 9; i >= 0; i--) sum = sum * z + (reversed ? c[10 - i] : c[i]);
    return sum;
}

FUNCTION f64 root_in(const f64 *c, i32 reversed, f64 a, f64 fa, f64 b, f64 fb) {
    i32 kept_a = 0, kept_b = 0;
    f64 z = a;
    for (i32 i = 0; i < ROOT_STEPS; i++) {
        z = (a * fb - b * fa) / (fb - fa);
        f64 f = horner(c, reversed, z);
        if ((f > 0.0) == (fb > 0.0)) {
            b = z;
            fb = f;
            if (kept_a) fa = fa * 0.5;
            kept_a = 1;
            kept_b = 0;
        } else {
            a = z;
            fa = f;
            if (kept_b) fb = fb * 0.5;
            kept_a = 0;
            kept_b = 1;
        }
    }
    return z;
}

FUNCTION f64 cubic_at(const f64 *c, f64 z) { return ((c[3] * z + c[2]) * z + c[1]) * z + c[0]; }

// Writes the essential matrix of a root; returns 0 where there is none.
FUNCTION i32 essential_of(const Reduced *reduced, f64 z, f64 *e) {
    f64 at[3][3], best[3] = {0.0, 0.0, 0.0}, found[3], square[9], cube[9];
    for (i32 i = 0; i < 3; i++) {
        const f64 *one = reduced->one[i];
        at[i][0] = cubic_at(reduced->x[i], z);
        at[i][1] = cubic_at(reduced->y[i], z);
        at[i][2] = (((one[4] * z + one[3]) * z + one[2]) * z + one[1]) * z + one[0];
    }
    for (i32 pair = 0; pair < 3; pair++) {
        cross3(at[pair == 2], at[pair == 0 ? 1 : 2], found);
        if (fabs(found[2]) > fabs(best[2]))
            for (i32 i = 0; i < 3; i++) best[i] = found[i];
    }
    f64 x = best[0] / best[2], y = best[1] / best[2];
    for (i32 i = 0; i < 9; i++)
        e[i] = x * reduced->space[0][i] + y * reduced->space[1][i] + z * reduced->space[2][i] + reduced->space[3][i];
    f64 sum = e[0] * e[0];
    for (i32 i = 1; i < 9; i++) sum = sum + e[i] * e[i];
    f64 norm = sqrt(sum);
    if (!(norm > 0.0 && norm < 1e12)) return 0;
    for (i32 i = 0; i < 9; i++) e[i] = e[i] / norm;
    for (i32 i = 0; i < 3; i++)
        for (i32 j = 0; j < 3; j++)
            square[3 * i + j] = e[3 * i] * e[3 * j] + e[3 * i + 1] * e[3 * j + 1] + e[3 * i + 2] * e[3 * j + 2];
    product3(square, e, cube);
    f64 trace = square[0] + square[4] + square[8];
    i32 essential = 1;
    for (i32 i = 0; i < 9; i++) essential = essential && fabs(2.0 * cube[i] - trace * e[i]) <= 1e-6;
    return essential;
}
