// Whether a match (x, y in A, u, v in B) agrees with a model: agreement.rs.

#if KIND == HOMOGRAPHY
FUNCTION i32 agrees(const f64 *h, f64 x, f64 y, f64 u, f64 v, f64 limit) {
    f64 w = h[6] * x + h[7] * y + h[8];
    f64 p = h[0] * x + h[1] * y + h[2] - u * w, q = h[3] * x + h[4] * y + h[5] - v * w;
    return w > 0.0 && p * p + q * q <= limit * (w * w);
}
#else
FUNCTION i32 agrees(const f64 *f, f64 x, f64 y, f64 u, f64 v, f64 limit) {
    f64 l0 = f[0] * x + f[1] * y + f[2], l1 = f[3] * x + f[4] * y + f[5];
    f64 m0 = f[0] * u + f[3] * v + f[6], m1 = f[1] * u + f[4] * v + f[7];
    f64 product = u * l0 + v * l1 + (f[6] * x + f[7] * y + f[8]);
    return product * product <= limit * (l0 * l0 + l1 * l1 + (m0 * m0 + m1 * m1));
}
#endif
