// Places of a rectified view: `sources` of mod.rs, the lens of camera.rs.

typedef struct {
    f64 u, v;
    i32 inside;
} Place;

// The place in the input of output pixel (x, y). m: the rotation back row by row, the focal length and the principal
// point of the view; the focal lengths and the principal point of the camera; its lens, k1 k2 p1 p2 k3; the squared
// radius within which that holds.
FUNCTION Place place(i32 x, i32 y, i32 width, i32 height, const f64 *m) {
    const f64 ray_x = ((f64)x - m[10]) / m[9], ray_y = ((f64)y - m[11]) / m[9];
    const f64 a = m[0] * ray_x + m[1] * ray_y + m[2];
    const f64 b = m[3] * ray_x + m[4] * ray_y + m[5];
    const f64 c = m[6] * ray_x + m[7] * ray_y + m[8];
    const f64 px = a / c, py = b / c;
    const f64 r2 = px * px + py * py;
    const f64 radial = 1.0 + r2 * (m[16] + r2 * (m[17] + r2 * m[20]));
    const f64 xy = 2.0 * px * py;
    Place p;
    p.u = m[12] * (px * radial + (m[18] * xy + m[19] * (r2 + 2.0 * px * px))) + m[14];
    p.v = m[13] * (py * radial + (m[18] * (r2 + 2.0 * py * py) + m[19] * xy)) + m[15];
    // NaN fails every comparison.
    p.inside = c > 0.0 && r2 <= m[21] && p.u >= -0.5 && p.v >= -0.5 && p.u < (f64)width - 0.5 && p.v < (f64)height - 0.5;
    return p;
}
