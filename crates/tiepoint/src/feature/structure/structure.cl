// The stages of structure, each with the arithmetic of its file: channels.rs, means.rs, corners.rs and polar.rs. A lane
// computes a pixel, except where another unit is stated.

#define PIXEL_X (GROUP_X * GROUP_WIDTH + LANE_X)
#define PIXEL_Y (GROUP_Y * GROUP_HEIGHT + LANE_Y)

// The images of this group's picture, of which each picture has `n` in a stack.
#define OF_PICTURE(stack, plane, n) ((stack) + (plane).step * (u64)((n) * GROUP_Z))

FUNCTION u64 index_of(Plane plane, i32 k, i32 x, i32 y) {
    return plane.step * (u64)k + (u64)y * plane.pitch + x;
}

// Half differences of the neighbours along both axes, the edge repeated.
FUNCTION void gradient(const GLOBAL f32 *image, Plane plane, i32 x, i32 y, f32 *across, f32 *down) {
    const GLOBAL f32 *row = image + (u64)y * plane.pitch;
    i32 above = MAX_I(y - 1, 0), below = MIN_I(y + 1, plane.height - 1);
    *across = 0.5f * (row[MIN_I(x + 1, plane.row - 1)] - row[MAX_I(x - 1, 0)]);
    *down = 0.5f * (image[index_of(plane, 0, x, below)] - image[index_of(plane, 0, x, above)]);
}

// Whether a pixel at most `reach` away along both axes is 0.
FUNCTION i32 is_near_zero(const GLOBAL f32 *image, Plane plane, i32 x, i32 y, const i32 reach) {
    i32 hidden = 0;
    for (i32 v = MAX_I(y - reach, 0); v <= MIN_I(y + reach, plane.height - 1); v++) {
        for (i32 u = MAX_I(x - reach, 0); u <= MIN_I(x + reach, plane.row - 1); u++) {
            hidden |= image[index_of(plane, 0, u, v)] == 0.0f;
        }
    }
    return hidden;
}

// The two points of the grid that a pixel lies between, and the weight of the second.
typedef struct {
    i32 first, second;
    f32 share;
} Between;

// Where pixel i of n lies among m points.
FUNCTION Between place(i32 i, i32 n, i32 m) {
    f64 at = ((f64)i + 0.5) * (f64)m / (f64)n - 0.5, last = (f64)(m - 1);
    at = at < 0.0 ? 0.0 : (at > last ? last : at);
    Between between;
    between.first = (i32)at;
    between.second = MIN_I(between.first + 1, m - 1);
    between.share = (f32)(at - (f64)between.first);
    return between;
}

// The mean of value k at a point of the grid; image 2 is the weight.
FUNCTION f32 point(const GLOBAL f32 *grids, Plane grid, i32 k, i32 x, i32 y) {
    f32 weight = grids[index_of(grid, 2, x, y)];
    return grids[index_of(grid, k, x, y)] / MAX_F(weight, LEAST_WEIGHT);
}

FUNCTION f32 mean_of(const GLOBAL f32 *grids, Plane grid, i32 k, Between x, Between y) {
    f32 left = point(grids, grid, k, x.first, y.first) * (1.0f - y.share)
        + point(grids, grid, k, x.first, y.second) * y.share;
    f32 right = point(grids, grid, k, x.second, y.first) * (1.0f - y.share)
        + point(grids, grid, k, x.second, y.second) * y.share;
    return left * (1.0f - x.share) + right * x.share;
}

// Grey and what counts become grey * counts, its product with grey, and counts, which is 1 where all of a pixel counts.
KERNEL(weigh) {
    const Plane plane = args.plane;
    i32 x = PIXEL_X, y = PIXEL_Y;
    if (x >= plane.row || y >= plane.height) return;
    const GLOBAL f32 *from = OF_PICTURE(picture, plane, 2);
    GLOBAL f32 *to = OF_PICTURE(weighted, plane, 3);
    f32 grey = from[index_of(plane, 0, x, y)];
    f32 counts = from[index_of(plane, 1, x, y)] > WHOLE ? 1.0f : 0.0f;
    f32 seen = grey * counts;
    to[index_of(plane, 0, x, y)] = seen;
    to[index_of(plane, 1, x, y)] = seen * grey;
    to[index_of(plane, 2, x, y)] = counts;
}

// Brightness less its local mean, divided by its deviation.
KERNEL(normalise) {
    const Plane plane = args.plane, grid = args.grid;
    i32 x = PIXEL_X, y = PIXEL_Y;
    if (x >= plane.row || y >= plane.height) return;
    Between across = place(x, plane.row, grid.row), down = place(y, plane.height, grid.height);
    const GLOBAL f32 *means = OF_PICTURE(grids, grid, 3);
    f32 mean = mean_of(means, grid, 0, across, down), square = mean_of(means, grid, 1, across, down);
    f32 deviation = SQRT(MAX_F(square - mean * mean, 0.0f));
    f32 grey = OF_PICTURE(picture, plane, 2)[index_of(plane, 0, x, y)];
    f32 counts = OF_PICTURE(weighted, plane, 3)[index_of(plane, 2, x, y)];
    even[index_of(plane, GROUP_Z, x, y)] = (grey - mean) / (deviation + NOISE) * counts;
}

// The lengths of the gradients of both scales, and whether they count.
KERNEL(magnitudes) {
    const Plane plane = args.plane;
    i32 x = PIXEL_X, y = PIXEL_Y;
    if (x >= plane.row || y >= plane.height) return;
    const GLOBAL f32 *hidden = OF_PICTURE(weighted, plane, 3) + 2 * plane.step;
    f32 counts = is_near_zero(hidden, plane, x, y, MARGIN) ? 0.0f : 1.0f;
    GLOBAL f32 *to = OF_PICTURE(lengths, plane, 3);
    f32 gx, gy;
    gradient(OF_PICTURE(first, plane, 1), plane, x, y, &gx, &gy);
    to[index_of(plane, 0, x, y)] = SQRT(gx * gx + gy * gy) * counts;
    gradient(OF_PICTURE(second, plane, 1), plane, x, y, &gx, &gy);
    to[index_of(plane, 1, x, y)] = SQRT(gx * gx + gy * gy) * counts;
    to[index_of(plane, 2, x, y)] = counts;
}

// Adds a gradient to the bins.
FUNCTION void add(f32 bins[BINS], f32 gx, f32 gy, f32 length, f32 mean, f32 counts) {
    f32 turn = atan2_f32(gy, gx) * BINS_A_RADIAN;
    f32 m = MIN_F(length / (mean + FLAT), CAP) * counts;
    i32 bin = (i32)turn;
    f32 share = turn - (f32)bin;
    UNROLL
    for (i32 i = 0; i < BINS; i++) {
        if (i == bin % BINS) bins[i] = bins[i] + m * (1.0f - share);
        if (i == (bin + 1) % BINS) bins[i] = bins[i] + m * share;
    }
}

KERNEL(fill) {
    const Plane plane = args.plane, grid = args.grid;
    i32 x = PIXEL_X, y = PIXEL_Y;
    if (x >= plane.row || y >= plane.height) return;
    Between across = place(x, plane.row, grid.row), down = place(y, plane.height, grid.height);
    const GLOBAL f32 *means = OF_PICTURE(grids, grid, 3), *length = OF_PICTURE(lengths, plane, 3);
    f32 counts = length[index_of(plane, 2, x, y)];
    f32 sums[BINS];
    UNROLL
    for (i32 i = 0; i < BINS; i++) sums[i] = 0.0f;
    f32 gx, gy;
    gradient(OF_PICTURE(first, plane, 1), plane, x, y, &gx, &gy);
    add(sums, gx, gy, length[index_of(plane, 0, x, y)], mean_of(means, grid, 0, across, down), counts);
    gradient(OF_PICTURE(second, plane, 1), plane, x, y, &gx, &gy);
    add(sums, gx, gy, length[index_of(plane, 1, x, y)], mean_of(means, grid, 1, across, down), counts);
    f32 sum = 0.0f;
    UNROLL
    for (i32 i = 0; i < BINS; i++) {
        OF_PICTURE(bins, plane, BINS)[index_of(plane, i, x, y)] = sums[i];
        sum = sum + sums[i];
    }
    strength[index_of(plane, GROUP_Z, x, y)] = sum;
}

// The bins at half the size with what counts there, side by side.
KERNEL(side_by_side) {
    const Plane plane = args.plane, half_plane = args.half_plane, out = args.out;
    i32 x = PIXEL_X, y = PIXEL_Y;
    if (x >= half_plane.row || y >= half_plane.height) return;
    GLOBAL f32 *pixel = OF_PICTURE(lanes, out, 1) + (u64)y * out.pitch + (u64)x * LANES;
    const GLOBAL f32 *halved = OF_PICTURE(halves, half_plane, BINS);
    const GLOBAL f32 *counts = OF_PICTURE(lengths, plane, 3) + 2 * plane.step;
    UNROLL
    for (i32 i = 0; i < BINS; i++) pixel[i] = halved[index_of(half_plane, i, x, y)];
    UNROLL
    for (i32 i = BINS; i < COUNTS; i++) pixel[i] = 0.0f;
    i32 left = 2 * x, right = MIN_I(2 * x + 1, plane.row - 1);
    i32 top = 2 * y, bottom = MIN_I(2 * y + 1, plane.height - 1);
    f32 one = 0.5f * (counts[index_of(plane, 0, left, top)] + counts[index_of(plane, 0, left, bottom)]);
    f32 other = 0.5f * (counts[index_of(plane, 0, right, top)] + counts[index_of(plane, 0, right, bottom)]);
    pixel[COUNTS] = 0.5f * (one + other);
}

// The products of the gradient's parts: xx, xy and yy.
KERNEL(products) {
    const Plane plane = args.plane;
    i32 x = PIXEL_X, y = PIXEL_Y;
    if (x >= plane.row || y >= plane.height) return;
    f32 gx, gy;
    gradient(smooth, plane, x, y, &gx, &gy);
    tensor[index_of(plane, 0, x, y)] = gx * gx;
    tensor[index_of(plane, 1, x, y)] = gx * gy;
    tensor[index_of(plane, 2, x, y)] = gy * gy;
}

KERNEL(respond) {
    const Plane plane = args.plane;
    i32 x = PIXEL_X, y = PIXEL_Y;
    if (x >= plane.row || y >= plane.height) return;
    f32 xx = tensor[index_of(plane, 0, x, y)], xy = tensor[index_of(plane, 1, x, y)];
    f32 yy = tensor[index_of(plane, 2, x, y)];
    response[index_of(plane, 0, x, y)] = (xx * yy - xy * xy) / (xx + yy + 1e-6f);
}

// The place at which the parabola through three neighbouring values is highest.
FUNCTION f32 top_of(f32 left, f32 middle, f32 right) {
    f32 bend = left - 2.0f * middle + right;
    if (!(bend < 0.0f)) return 0.0f;
    f32 top = 0.5f * (left - right) / bend;
    return top < -0.5f ? -0.5f : (top > 0.5f ? 0.5f : top);
}

// Whether no neighbour of 5 x 5 is stronger, nor an earlier one as strong.
FUNCTION i32 is_peak(const GLOBAL f32 *response, Plane plane, i32 x, i32 y) {
    f32 value = response[index_of(plane, 0, x, y)];
    if (!(value > LEAST_RESPONSE)) return 0;
    for (i32 v = y - 2; v <= y + 2; v++) {
        for (i32 u = x - 2; u <= x + 2; u++) {
            f32 other = response[index_of(plane, 0, u, v)];
            i32 is_later = v > y || (v == y && u >= x);
            if (!(other < value || (other == value && is_later))) return 0;
        }
    }
    return 1;
}

// Appends the peaks of a picture to the list, in any order, and counts the pixels at which there may be one. The first
// number of `counts` is that of all peaks.
KERNEL(find_peaks) {
    const Plane plane = args.plane;
    LOCAL u32 seen;
    if (LANE_X == 0 && LANE_Y == 0) seen = 0u;
    BARRIER();
    i32 x = PIXEL_X, y = PIXEL_Y;
    i32 inside = x >= BORDER && y >= BORDER && x < plane.row - BORDER && y < plane.height - BORDER;
    if (inside && !is_near_zero(lengths + 2 * plane.step, plane, x, y, BORDER - MARGIN)) {
        ATOMIC_ADD(&seen, 1u);
        if (is_peak(response, plane, x, y)) {
            u32 slot = ATOMIC_ADD(counts, 1u);
            if (slot < args.capacity) {
                const GLOBAL f32 *at = response + index_of(plane, 0, x, y);
                f32 middle = at[0];
                f32 right = top_of(at[-1], middle, at[1]), down = top_of(at[-plane.pitch], middle, at[plane.pitch]);
                peaks[slot] = U32X4(BITS_OF((f32)x + right), BITS_OF((f32)y + down), BITS_OF(middle), args.picture);
            }
        }
    }
    BARRIER();
    if (LANE_X == 0 && LANE_Y == 0) ATOMIC_ADD(counts + 1 + args.picture, seen);
}

// The bins at a place by linear interpolation, along rows first; 0 outside of the centres of the pixels.
FUNCTION void interpolate(f32 values[BINS], const GLOBAL f32 *ring, Plane plane, f32 x, f32 y) {
    UNROLL
    for (i32 i = 0; i < BINS; i++) values[i] = 0.0f;
    if (!(x >= 0.0f && y >= 0.0f && x <= (f32)(plane.row - 1) && y <= (f32)(plane.height - 1))) return;
    i32 left = (i32)x, top = (i32)y;
    f32 fx = x - (f32)left, fy = y - (f32)top;
    i32 right = MIN_I(left + 1, plane.row - 1), bottom = MIN_I(top + 1, plane.height - 1);
    UNROLL
    for (i32 i = 0; i < BINS; i++) {
        f32 upper = ring[index_of(plane, i, left, top)] * (1.0f - fx) + ring[index_of(plane, i, right, top)] * fx;
        f32 lower = ring[index_of(plane, i, left, bottom)] * (1.0f - fx) + ring[index_of(plane, i, right, bottom)] * fx;
        values[i] = upper * (1.0f - fy) + lower * fy;
    }
}

// A lane makes a cell of a corner.
KERNEL(sample) {
    const Plane plane = args.plane;
    i32 i = GROUP_X * ROW_LANES + LANE_X;
    if (i >= args.corners * RINGS * TURNS) return;
    i32 ring = i / TURNS % RINGS, sector = i % TURNS, corner = i / (RINGS * TURNS);
    f32 x = FLOAT_OF(keypoints[corner * WORDS]) + RADII[ring] * COSINES[sector];
    f32 y = FLOAT_OF(keypoints[corner * WORDS + 1]) + RADII[ring] * COSINES[(sector + 9) % TURNS];
    f32 values[BINS];
    const GLOBAL f32 *of = ring == 0 ? first : (ring == 1 ? second : third);
    interpolate(values, of, plane, 0.5f * (x - 0.5f), 0.5f * (y - 0.5f));
    f32 sum = 0.0f;
    UNROLL
    for (i32 k = 0; k < BINS; k++) sum = sum + values[k] * values[k];
    f32 length = SQRT(sum) + WEAK;
    UNROLL
    for (i32 k = 0; k < BINS; k++) cells[i * BINS + k] = values[k] / length;
}

// A lane makes a value of the mean descriptor.
KERNEL(average) {
    i32 i = GROUP_X * ROW_LANES + LANE_X;
    if (i >= LENGTH) return;
    f64 sum = 0.0;
    for (i32 corner = 0; corner < args.corners; corner++) sum = sum + (f64)cells[corner * LENGTH + i];
    mean[i] = (f32)(sum / (f64)args.corners);
}

// A group makes a descriptor.
KERNEL(quantise) {
    LOCAL f32 special[LENGTH];
    LOCAL f32 length;
    const i32 first = GROUP_X * LENGTH;
    for (i32 i = LANE_X; i < LENGTH; i += ROW_LANES) special[i] = cells[first + i] - mean[i];
    BARRIER();
    if (LANE_X == 0) {
        f32 sum = 0.0f;
        for (i32 i = 0; i < LENGTH; i++) sum = sum + special[i] * special[i];
        length = SQRT(sum) + 1e-6f;
    }
    BARRIER();
    for (i32 i = LANE_X; i < LENGTH; i += ROW_LANES) {
        f32 level = ROUND_EVEN(special[i] / length * UNIT);
        level = level < -127.0f ? -127.0f : (level > 127.0f ? 127.0f : level);
        bytes[first + i] = (u8)(i32)(level + 128.0f);
    }
}

// A lane moves a byte to its place in the descriptor of the picture turned by a number of twelfths, or turned back by it.
// All descriptors without a turn come first, then those at one turn, and so on.
KERNEL(turn) {
    i32 i = GROUP_X * ROW_LANES + LANE_X, turn = GROUP_Y, all = args.corners * LENGTH;
    if (i >= all) return;
    i32 sector = i / BINS % TURNS, bin = i % BINS, ring = i - sector * BINS - bin;
    i32 turns = args.back != 0 ? (TURNS - turn) % TURNS : turn;
    to[(u64)turn * all + ring + (sector + turns) % TURNS * BINS + (bin + turns) % BINS] = from[i];
}
