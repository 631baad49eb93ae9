// exp, ln, atan2, sine and cosine with the bits of mod.rs, where each is explained.

FUNCTION f32 polynomial(CONSTANT_POINTER const f32 *c, i32 n, f32 x) {
    f32 sum = c[n - 1];
    UNROLL
    for (i32 i = n - 2; i >= 0; i--) sum = FMA(sum, x, c[i]);
    return sum;
}

// e^x; x is clamped to [-87, 88] first.
FUNCTION f32 exp_f32(f32 x) {
    x = x > -87.0f ? x : -87.0f;
    x = x < 88.0f ? x : 88.0f;
    f32 rounded = FMA(x, LOG2_E, ROUNDER);
    f32 n = rounded - ROUNDER;
    f32 r = FMA(n, -LN_2_LOW, FMA(n, -LN_2_HIGH, x));
    f32 e = FMA(r * r, polynomial(EXP, 5, r), r) + 1.0f;
    return e * FLOAT_OF((BITS_OF(rounded) - BITS_OF(ROUNDER) + 127u) << 23);
}

// The angle of (x, y) in [0, 2 pi); 0 for (0, 0).
FUNCTION f32 atan2_f32(f32 y, f32 x) {
    f32 ax = ABS(x), ay = ABS(y);
    f32 low = ay > ax ? ax : ay, high = ay > ax ? ay : ax;
    f32 a = low / (high > 0.0f ? high : 1.0f);
    f32 r = a * polynomial(ATAN, 8, a * a);
    r = ay > ax ? QUARTER_TURN - r : r;
    r = x < 0.0f ? HALF_TURN - r : r;
    r = y < 0.0f ? TURN - r : r;
    return r < TURN ? r : 0.0f;
}

// Sine and cosine of an angle in [-2 pi, 2 pi].
FUNCTION void sin_cos_f32(f32 angle, f32 *sin_out, f32 *cos_out) {
    f32 n = FMA(angle, TWO_OVER_PI, ROUNDER) - ROUNDER;
    f32 r = FMA(n, -HALF_PI_LOW, FMA(n, -HALF_PI_HIGH, angle));
    f32 t = r * r;
    f32 s = FMA(r * t, polynomial(SIN, 3, t), r);
    f32 c = FMA(t * t, polynomial(COS, 3, t), FMA(t, -0.5f, 1.0f));
    i32 quadrant = (i32)n;
    f32 sine = (quadrant & 1) == 0 ? s : c, cosine = (quadrant & 1) == 0 ? c : s;
    *sin_out = (quadrant & 2) == 0 ? sine : -sine;
    *cos_out = ((quadrant + 1) & 2) == 0 ? cosine : -cosine;
}

#if defined(CUDA) || defined(cl_khr_fp64)
// ln x of a positive, normal number, where a device has f64.
FUNCTION f64 ln_f64(f64 x) {
    const u64 bits = BITS_OF_F64(x);
    i64 exponent = (i64)(bits >> 52) - 1023;
    f64 m = F64_OF((bits & 0xffffffffffffful) | 0x3ff0000000000000ul);
    if (m > 1.41421356237309514547) {
        m = 0.5 * m;
        exponent++;
    }
    const f64 s = (m - 1.0) / (m + 1.0), square = s * s;
    f64 sum = 0.0;
    for (i32 i = 11; i >= 0; i--) sum = 1.0 / (f64)(2 * i + 1) + square * sum;
    return (f64)exponent * 0.693147180559945286227 + 2.0 * s * sum;
}
#endif
