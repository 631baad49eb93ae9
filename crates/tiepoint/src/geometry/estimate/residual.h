// Whether a match (x, y in A, u, v in B) agrees with a model, and its terms in the sums of a step: residual.rs.

#if KIND == HOMOGRAPHY
FUNCTION i32 agrees(const f64 *m, f64 x, f64 y, f64 u, f64 v, f64 limit) {
    f64 w = m[6] * x + m[7] * y + m[8];
    f64 p = m[0] * x + m[1] * y + m[2] - u * w, q = m[3] * x + m[4] * y + m[5] - v * w;
    f64 a = m[0] - u * m[6], b = m[1] - u * m[7], c = m[3] - v * m[6], d = m[4] - v * m[7];
    f64 square = w * w;
    f64 xx = a * a + b * b + square, yy = c * c + d * d + square, xy = a * c + b * d;
    f64 error = p * p * yy - p * q * xy * 2.0 + q * q * xx;
    return w > 0.0 && error <= limit * (xx * yy - xy * xy);
}

FUNCTION void add_term(const f64 *m, f64 x, f64 y, f64 xb, f64 yb, f64 limit, i32 biweight, f64 *sums) {
    f64 w = m[6] * x + m[7] * y + m[8], inverse = 1.0 / w;
    f64 u = (m[0] * x + m[1] * y + m[2]) * inverse, v = (m[3] * x + m[4] * y + m[5]) * inverse;
    f64 d00 = (m[0] - xb * m[6]) * inverse, d01 = (m[1] - xb * m[7]) * inverse;
    f64 d10 = (m[3] - yb * m[6]) * inverse, d11 = (m[4] - yb * m[7]) * inverse;
    f64 cxx = d00 * d00 + d01 * d01 + 1.0, cyy = d10 * d10 + d11 * d11 + 1.0, cxy = d00 * d10 + d01 * d11;
    f64 over = 1.0 / (cxx * cyy - cxy * cxy);
    f64 xx = cyy * over, xy = -cxy * over, yy = cxx * over;
    f64 ex = xb - u, ey = yb - v;
    f64 share = (ex * (xx * ex + xy * ey) + ey * (xy * ex + yy * ey)) / limit;
    if (!(w > 0.0 && 1.0 > share)) {
        sums[0] = sums[0] + 1.0;
        return;
    }
    sums[0] = sums[0] + share;
    if (biweight) {
        f64 root = 1.0 - share, weight = root * root;
        xx = xx * weight;
        xy = xy * weight;
        yy = yy * weight;
    }
    f64 p[3] = {x * inverse, y * inverse, inverse};
    f64 gx = xx * ex + xy * ey, gy = xy * ex + yy * ey;
    f64 along_x = xx * u + xy * v, along_y = xy * u + yy * v, far = along_x * u + along_y * v;
    f64 outer[6] = {p[0] * p[0], p[0] * p[1], p[0] * p[2], p[1] * p[1], p[1] * p[2], p[2] * p[2]};
    UNROLL
    for (i32 k = 0; k < 6; k++) {
        sums[1 + k] = sums[1 + k] + xx * outer[k];
        sums[7 + k] = sums[7 + k] + xy * outer[k];
        sums[13 + k] = sums[13 + k] + yy * outer[k];
        sums[19 + k] = sums[19 + k] + along_x * outer[k];
        sums[25 + k] = sums[25 + k] + along_y * outer[k];
        sums[31 + k] = sums[31 + k] + far * outer[k];
    }
    f64 along = gx * u + gy * v;
    UNROLL
    for (i32 k = 0; k < 3; k++) {
        sums[37 + k] = sums[37 + k] + gx * p[k];
        sums[40 + k] = sums[40 + k] + gy * p[k];
        sums[43 + k] = sums[43 + k] + -(along * p[k]);
    }
}
#else
FUNCTION i32 agrees(const f64 *f, f64 x, f64 y, f64 u, f64 v, f64 limit) {
    f64 l0 = f[0] * x + f[1] * y + f[2], l1 = f[3] * x + f[4] * y + f[5];
    f64 m0 = f[0] * u + f[3] * v + f[6], m1 = f[1] * u + f[4] * v + f[7];
    f64 product = u * l0 + v * l1 + (f[6] * x + f[7] * y + f[8]);
    return product * product <= limit * (l0 * l0 + l1 * l1 + (m0 * m0 + m1 * m1));
}

FUNCTION void add_term(const f64 *f, f64 x, f64 y, f64 u, f64 v, f64 limit, i32 biweight, f64 *sums) {
    f64 l0 = f[0] * x + f[1] * y + f[2], l1 = f[3] * x + f[4] * y + f[5];
    f64 m0 = f[0] * u + f[3] * v + f[6], m1 = f[1] * u + f[4] * v + f[7];
    f64 norm = l0 * l0 + l1 * l1 + (m0 * m0 + m1 * m1);
    f64 error = u * l0 + v * l1 + (f[6] * x + f[7] * y + f[8]);
    f64 share = error * error / (limit * norm);
    if (!(1.0 > share)) {
        sums[0] = sums[0] + 1.0;
        return;
    }
    sums[0] = sums[0] + share;
    f64 root = 1.0 - share, weight = (biweight ? root * root : 1.0) / norm, slope = error / norm;
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
    i32 at = 1;
    UNROLL
    for (i32 r = 0; r < 9; r++) {
        f64 weighted = weight * j[r];
        UNROLL
        for (i32 c = 0; c < 9; c++) {
            if (c < r) continue;
            sums[at] = sums[at] + weighted * j[c];
            at++;
        }
        sums[46 + r] = sums[46 + r] + weighted * -error;
    }
}
#endif
