// The responses of all layers that are computed, as in mod.rs in this folder: 32 reads of the integral image each,
// almost all from the first-level cache, because a group's samples lie together.

// A layer, as `compute` of gpu/layers.rs writes it.
typedef struct {
    // The first of its groups, and how many stand side by side.
    u32 first_group;
    i32 groups_across;
    // Pixels from sample to sample.
    i32 step;
    // Corners of the boxes relative to the sample.
    i32 outer[2], inner[2], across[2], diagonal[4];
    f32 norm, norm_xy;
    // The samples where the filter lies inside the image.
    i32 columns[2], rows[2];
    // The layout of its responses: responses from row to row, and the index of the first in two halves.
    i32 pitch;
    u32 low, high;
} ResponseLayer;

FUNCTION f32 response(SUM xx, SUM yy, SUM xy, f32 norm, f32 norm_xy) {
    f32 dxx = signed_f32(xx) * norm;
    f32 dyy = signed_f32(yy) * norm;
    f32 dxy = signed_f32(xy) * norm_xy;
    f32 det = FMA(dxx, dyy, -(dxy * dxy));
    f32 magnitude = det > 0.0f ? det : 0.0f;
    return (SIGNED)(xx + yy) < 0 ? magnitude : -magnitude;
}

// The sum of the box between two columns and two rows.
#define BOX(left, right, top, bottom) \
    ((bottom)[right] - (bottom)[left] - ((top)[right] - (top)[left]))

// The third dimension is the image.
KERNEL(respond) {
    const i32 pitch = args.plane.pitch;
    i32 n = 0;
    while (n + 1 < args.layer_count && (u32)GROUP_X >= layers[n + 1].first_group) n++;
    const GLOBAL ResponseLayer *layer = layers + n;
    i32 group = GROUP_X - (i32)layer->first_group;
    i32 column = layer->columns[0] + group % layer->groups_across * TILE_X + LANE_X;
    i32 first_row = layer->rows[0] + group / layer->groups_across * (TILE_Y * ROWS_PER_LANE) + LANE_Y;
    if (column >= layer->columns[1]) return;
    sums += args.plane.origin + (u64)GROUP_Z * args.plane.step;
    responses += (u64)GROUP_Z * args.image_responses + ((u64)layer->high << 32 | layer->low);
    f32 norm = layer->norm, norm_xy = layer->norm_xy;
    i32 o0 = layer->outer[0], o1 = layer->outer[1], i0 = layer->inner[0], i1 = layer->inner[1];
    i32 a0 = layer->across[0], a1 = layer->across[1];
    i32 d0 = layer->diagonal[0], d1 = layer->diagonal[1], d2 = layer->diagonal[2], d3 = layer->diagonal[3];
    for (i32 k = 0; k < ROWS_PER_LANE; k++) {
        i32 row = first_row + k * TILE_Y;
        if (row >= layer->rows[1]) return;
        const GLOBAL SUM *at = sums + (i64)row * layer->step * pitch + (i64)column * layer->step;
#define ROW(y) (at + (i64)(y) * pitch)
        const GLOBAL SUM *top = ROW(a0), *bottom = ROW(a1);
        SUM xx = BOX(o0, o1, top, bottom) - 3 * BOX(i0, i1, top, bottom);
        SUM yy = BOX(a0, a1, ROW(o0), ROW(o1)) - 3 * BOX(a0, a1, ROW(i0), ROW(i1));
        const GLOBAL SUM *y0 = ROW(d0), *y1 = ROW(d1), *y2 = ROW(d2), *y3 = ROW(d3);
        SUM xy = BOX(d0, d1, y0, y1) + BOX(d2, d3, y2, y3) - BOX(d2, d3, y0, y1) - BOX(d0, d1, y2, y3);
#undef ROW
        responses[(u64)row * layer->pitch + column] = response(xx, yy, xy, norm, norm_xy);
    }
}
