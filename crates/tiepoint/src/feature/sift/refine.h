// The position of an extremum to a fraction of a pixel and level. Contract, order of operations and names as refine.rs.

// One pixel towards `offset` when it is at least the limit.
FUNCTION i32 step_towards(f32 offset) { return offset >= SETTLED_BELOW ? 1 : (offset <= -SETTLED_BELOW ? -1 : 0); }

// Refines the extremum at (x, y) of a layer; 0 when it does not settle, is too weak, or lies on an edge.
FUNCTION i32 refine(const Levels *levels, i32 x, i32 y, i32 layer, f32 least_contrast, f32 edge, f32 sigma,
                    Keypoint *point) {
    for (i32 moves = 1; moves <= MOST_MOVES; moves++) {
        f32 value = dog(levels, layer, x, y), twice = value * 2.0f;
        f32 right = dog(levels, layer, x + 1, y), left = dog(levels, layer, x - 1, y);
        f32 down = dog(levels, layer, x, y + 1), up = dog(levels, layer, x, y - 1);
        f32 above = dog(levels, layer + 1, x, y), below = dog(levels, layer - 1, x, y);
        f32 gx = (right - left) * 0.5f, gy = (down - up) * 0.5f, gs = (above - below) * 0.5f;
        f32 xx = (right + left) - twice, yy = (down + up) - twice, ss = (above + below) - twice;
        f32 xy = ((dog(levels, layer, x + 1, y + 1) - dog(levels, layer, x - 1, y + 1)) -
                  (dog(levels, layer, x + 1, y - 1) - dog(levels, layer, x - 1, y - 1))) * 0.25f;
        f32 xs = ((dog(levels, layer + 1, x + 1, y) - dog(levels, layer + 1, x - 1, y)) -
                  (dog(levels, layer - 1, x + 1, y) - dog(levels, layer - 1, x - 1, y))) * 0.25f;
        f32 ys = ((dog(levels, layer + 1, x, y + 1) - dog(levels, layer + 1, x, y - 1)) -
                  (dog(levels, layer - 1, x, y + 1) - dog(levels, layer - 1, x, y - 1))) * 0.25f;
        f32 c00 = yy * ss - ys * ys, c01 = xs * ys - xy * ss, c02 = xy * ys - xs * yy;
        f32 c11 = xx * ss - xs * xs, c12 = xy * xs - xx * ys, c22 = xx * yy - xy * xy;
        f32 det = (xx * c00 + xy * c01) + xs * c02;
        f32 dx = -(((c00 * gx + c01 * gy) + c02 * gs) / det);
        f32 dy = -(((c01 * gx + c11 * gy) + c12 * gs) / det);
        f32 ds = -(((c02 * gx + c12 * gy) + c22 * gs) / det);
        if (!(IS_FINITE(dx) && IS_FINITE(dy) && IS_FINITE(ds))) return 0;
        i32 nx = x + step_towards(dx), ny = y + step_towards(dy);
        i32 next_layer = IN_PLACE ? layer : layer + step_towards(ds);
        i32 inside = nx >= BORDER && nx < levels->width - BORDER && ny >= levels->top && ny < levels->bottom &&
                     next_layer >= 1 && next_layer <= LEVELS;
        i32 settled = nx == x && ny == y && next_layer == layer;
#if IN_PLACE
        // VLFeat: a step that would leave the searched part is not taken, and the last position is accepted.
        settled = settled || !inside || moves == MOST_MOVES;
        if (settled && !(ABS(dx) < 1.5f && ABS(dy) < 1.5f && ABS(ds) < 1.5f)) return 0;
#else
        if (!inside) return 0;
#endif
        if (!settled) {
            x = nx;
            y = ny;
            layer = next_layer;
            continue;
        }
        f32 response = ABS(value + ((gx * dx + gy * dy) + gs * ds) * 0.5f);
        f32 trace = xx + yy, det2 = xx * yy - xy * xy;
        f32 edge1 = edge + 1.0f;
        if (!(response >= least_contrast && det2 > 0.0f && trace * trace * edge < edge1 * edge1 * det2)) return 0;
        f32 scale = sigma * exp_f32(((f32)layer + ds) / (f32)LEVELS * LN_2);
        point->x = ((f32)x + dx) * levels->pixel;
        // Rounded as in the whole image.
        point->y = ((f32)(y + levels->first_row) + dy) * levels->pixel;
        point->scale = scale * levels->pixel;
        point->angle = 0.0f;
        point->response = response;
        point->octave_layer = (u32)(levels->number + 128) << 8 | (u32)layer;
        // A DoG is negative where the image is brighter than around.
        point->sign = value < 0.0f ? 1 : -1;
        point->mark = 0u;
        return 1;
    }
    return 0;
}
