// The descriptors of keypoints; mod.rs describes what is computed. One group a keypoint.

// The keypoint's frame: its position, and its axes divided by the width of a cell.
typedef struct {
    f32 x, y, angle, cosine, sine;
} Frame;

FUNCTION Frame frame_of(const Point *point, f32 angle) {
    Frame f;
    // OpenCV describes whole pixels.
    f.x = EXACT ? point->x : ROUND_EVEN(point->x);
    f.y = EXACT ? point->y : ROUND_EVEN(point->y);
    f.angle = angle;
    f32 s, c, cell = CELL * point->scale;
    sin_cos_f32(angle, &s, &c);
    f.sine = s / cell;
    f.cosine = c / cell;
    return f;
}

// Narrows a span of columns to one of the two bands of CELLS + 1 cells that cross in the window: |a dx + b| < HALF,
// with `inverse` = 1 / a.
FUNCTION void narrow(f32 *low, f32 *high, f32 inverse, f32 b, f32 x) {
    if (!(ABS(inverse) < 1e6f)) return;
    f32 p = (-HALF - b) * inverse, q = (HALF - b) * inverse;
    *low = MAX_F(*low, MIN_F(p, q) + x - 1.0f);
    *high = MIN_F(*high, MAX_F(p, q) + x + 2.0f);
}

// Columns at a distance of `dy` rows that can lie in the window; a pixel too many on either side does no harm.
FUNCTION Span columns_of_row(const Frame *f, f32 inverse_cosine, f32 inverse_sine, f32 dy, Span columns) {
    f32 low = (f32)columns.low, high = (f32)columns.high;
    narrow(&low, &high, inverse_cosine, f->sine * dy, f->x);
    narrow(&low, &high, inverse_sine, f->cosine * dy, f->x);
    Span span;
    span.low = (i32)low;
    span.high = MAX_I((i32)high, span.low);
    return span;
}

// The bin of a position; how far the position lies beyond it is the share of the next bin.
FUNCTION f32 first_bin(f32 v) {
    f32 rounded = ((v - 0.5f) + ROUNDER) - ROUNDER;
    return rounded > 0.0f ? rounded : 0.0f;
}

// Divides a contribution between two neighbouring directions of a cell.
FUNCTION void add_to_cell(LOCAL_POINTER u32 *cell, i32 first, i32 second, f32 part, f32 share_of_second) {
    f32 second_part = part * share_of_second;
    ATOMIC_ADD(cell + first, (u32)to_integer(part - second_part));
    ATOMIC_ADD(cell + second, (u32)to_integer(second_part));
}

// Adds a pixel's gradient to its eight bins in a column. Lanes whose pixels lie COLUMNS apart share a column; they
// seldom add to the same bin. A column for every lane would need no atomics, but four times the local memory, which
// would leave room for only a third of the lanes.
FUNCTION void add_gradient(LOCAL_POINTER u32 *column, const Sample *s, const Frame *f) {
    f32 gx = s->right - s->left, gy = s->below - s->above;
    f32 dx = (f32)s->x - f->x, dy = (f32)s->y - f->y;
    f32 u = FMA(f->cosine, dx, f->sine * dy);
    f32 v = FMA(f->cosine, dy, -(f->sine * dx));
    if (!(ABS(u) < HALF && ABS(v) < HALF)) return;
    f32 weight = exp_f32(FMA(u, u, v * v) * -0.125f);
    f32 strength = SQRT(FMA(gx, gx, gy * gy)) * weight * UNIT;
    f32 turned = (f->angle - atan2_f32(gy, gx)) * DIRECTIONS_PER_RADIAN;
    turned = turned < 0.0f ? turned + (f32)DIRECTIONS : turned;
    f32 r = first_bin(v + HALF), c = first_bin(u + HALF), o = first_bin(turned);
    f32 r1 = v + HALF - r, c1 = u + HALF - c, o1 = turned - o;
    f32 row1 = strength * r1;
    f32 row0 = strength - row1;
    f32 p01 = row0 * c1, p11 = row1 * c1;
    f32 p00 = row0 - p01, p10 = row1 - p11;
    // Rows r - 1 and r of cells, and columns likewise. Beyond the last cell a share is dropped.
    i32 row = (i32)r, col = (i32)c, direction = (i32)o;
    i32 has_row0 = row > 0, has_row1 = row < CELLS, has_col0 = col > 0, has_col1 = col < CELLS;
    LOCAL_POINTER u32 *cell = column + ((row - 1) * CELLS + col - 1) * (DIRECTIONS * COLUMNS);
    i32 first = (direction & (DIRECTIONS - 1)) * COLUMNS, second = ((direction + 1) & (DIRECTIONS - 1)) * COLUMNS;
    if (has_row0 && has_col0) add_to_cell(cell, first, second, p00, o1);
    if (has_row0 && has_col1) add_to_cell(cell + DIRECTIONS * COLUMNS, first, second, p01, o1);
    cell += CELLS * DIRECTIONS * COLUMNS;
    if (has_row1 && has_col0) add_to_cell(cell, first, second, p10, o1);
    if (has_row1 && has_col1) add_to_cell(cell + DIRECTIONS * COLUMNS, first, second, p11, o1);
}

// The last step of every sum of 128 values: sixteen partial sums, as a binary tree.
FUNCTION f32 sum_of_partial(const LOCAL_POINTER f32 *partial) {
    f32 s[8];
    UNROLL
    for (i32 i = 0; i < 8; i++) s[i] = partial[i] + partial[i + 8];
    UNROLL
    for (i32 i = 0; i < 4; i++) s[i] += s[i + 4];
    return (s[0] + s[2]) + (s[1] + s[3]);
}

// Numbers the pixels of a window row after row without gaps: pixel s of row r lies in column s + column_less_first[r],
// and the first of the row after r is number first_of_row[r + 1]. Every lane counts the pixels of some successive rows,
// then finds how many come before them. Returns the number of all.
FUNCTION i32 number_pixels(LOCAL_POINTER i32 *first_of_row, LOCAL_POINTER i32 *column_less_first,
                           LOCAL_POINTER i32 *of_lanes, const Frame *frame, Span columns, Span rows, i32 lane) {
    f32 inverse_cosine = 1.0f / frame->cosine, inverse_sine = -1.0f / frame->sine;
    i32 height = MIN_I(rows.high - rows.low, ROWS);
    i32 rows_a_lane = (height + LANES - 1) / LANES;
    i32 begin = MIN_I(lane * rows_a_lane, height), end = MIN_I(begin + rows_a_lane, height);
    i32 pixels = 0;
    for (i32 row = begin; row < end; row++) {
        f32 dy = (f32)(rows.low + row) - frame->y;
        Span span = columns_of_row(frame, inverse_cosine, inverse_sine, dy, columns);
        first_of_row[row] = pixels;
        column_less_first[row] = span.low - pixels;
        pixels += span.high - span.low;
    }
    of_lanes[lane] = pixels;
    BARRIER();
    i32 before = 0, n = 0;
    for (i32 l = 0; l < LANES; l++) {
        before += l < lane ? of_lanes[l] : 0;
        n += of_lanes[l];
    }
    for (i32 row = begin; row < end; row++) {
        first_of_row[row] += before;
        column_less_first[row] -= before;
    }
    if (lane == 0) first_of_row[height] = n;
    BARRIER();
    return n;
}

// Adds the gradients of a lane's pixels, of the `n` numbered ones, to its column. The next pixel is read while one is
// processed.
FUNCTION void add_window(LOCAL_POINTER u32 *column, const LOCAL_POINTER i32 *first_of_row,
                         const LOCAL_POINTER i32 *column_less_first, const Point *point, const Frame *frame, i32 top,
                         i32 n, i32 lane) {
    if (lane >= n) return;
    i32 row = 0;
    while (first_of_row[row + 1] <= lane) row++;
    Sample next = sample_at(point, column_less_first[row] + lane, top + row);
    for (i32 s = lane; s < n; s += LANES) {
        Sample sample = next;
        i32 coming = s + LANES;
        if (coming < n) {
            while (first_of_row[row + 1] <= coming) row++;
            next = sample_at(point, column_less_first[row] + coming, top + row);
        }
        add_gradient(column, &sample, frame);
    }
}

// The sum of all values, or of their squares.
FUNCTION f32 sum_of_values(const LOCAL_POINTER f32 *values, LOCAL_POINTER f32 *partial, const i32 squared, i32 lane) {
    for (i32 i = lane; i < 16; i += LANES) {
        f32 sum = 0.0f;
        for (i32 k = i; k < DIMENSION; k += 16) sum += squared ? values[k] * values[k] : values[k];
        partial[i] = sum;
    }
    BARRIER();
    return sum_of_partial(partial);
}

// Writes the values, clipped at a fifth of their `norm`, as the descriptor; `total` is their sum or that of their
// squares.
FUNCTION void write_descriptor(GLOBAL VALUE *descriptor, const LOCAL_POINTER f32 *values, f32 norm, f32 total, i32 lane) {
    f32 scale = 1.0f / SQRT(total);
    for (i32 i = lane; i < VALUES; i += LANES) {
#if IN_BYTES
        // Four bytes at once.
        u32 word = 0;
        UNROLL
        for (i32 k = 3; k >= 0; k--) {
            f32 value = values[4 * i + k];
            value = ROOT ? SQRT(value / total) : value * scale;
            word = word << 8 | (norm == 0.0f ? 0u : (u32)MIN_I(to_integer(value * 512.0f), 255));
        }
        descriptor[i] = word;
#else
        f32 value = ROOT ? SQRT(values[i] / total) : values[i] * scale;
        descriptor[i] = norm == 0.0f ? 0.0f : value;
#endif
    }
}

// The number of features of an image, for the host. It exceeds the capacity when there was too little room for them,
// or for the points that they come from.
FUNCTION u32 found_in(const GLOBAL u32 *feature_counts, const GLOBAL u32 *point_counts, u32 capacity, i32 image) {
    u32 features = feature_counts[image], points = point_counts[image];
    return points > capacity && points > features ? points : features;
}

// Writes the first `limit` features of an image (the second dimension, from `first_image` on) in their `order`, with
// their descriptors if these have values, and the number of features.
KERNEL(describe) {
    const u32 capacity = args.capacity;
    LOCAL u32 sums[DIMENSION * COLUMNS];
    LOCAL i32 first_of_row[ROWS + 1];
    LOCAL i32 column_less_first[ROWS];
    LOCAL i32 of_lanes[LANES];
    LOCAL f32 values[DIMENSION];
    LOCAL f32 partial[16];
    i32 lane = LANE_X, image = args.first_image + GROUP_Y;
    u32 most = args.limit < capacity ? args.limit : capacity;
    u32 count = feature_counts[image] < most ? feature_counts[image] : most;
    if (GROUP_X == 0 && lane == 0) counts[image] = found_in(feature_counts, point_counts, capacity, image);
    features += (u64)image * capacity;
    order += (u64)image * capacity;
    keypoints += (u64)image * capacity * WORDS;
    descriptors += (u64)image * capacity * VALUES;
    levels += (u64)image * args.image_stride;
    LOCAL_POINTER u32 *column = sums + (lane & (COLUMNS - 1));
    for (u32 rank = (u32)GROUP_X; rank < count; rank += (u32)GROUPS_X) {
        const GLOBAL Keypoint *feature = features + (u32)order[rank];
        for (i32 w = lane; w < WORDS; w += LANES)
            keypoints[(u64)rank * WORDS + w] = ((const GLOBAL u32 *)feature)[w];
#if VALUES > 0
        Point point = point_of(feature, levels, octaves);
        Frame frame = frame_of(&point, feature->angle);
        i32 radius = (i32)ROUND_EVEN(CELL * point.scale * ROOT_2 * (f32)(CELLS + 1) * 0.5f) + 1;
        Span columns = around(point.x, radius, point.width), rows = around(point.y, radius, point.height);
        for (i32 i = lane; i < DIMENSION * COLUMNS; i += LANES) sums[i] = 0;
        i32 n = number_pixels(first_of_row, column_less_first, of_lanes, &frame, columns, rows, lane);
        add_window(column, first_of_row, column_less_first, &point, &frame, rows.low, n, lane);
        BARRIER();

        for (i32 i = lane; i < DIMENSION; i += LANES) values[i] = (f32)(i32)sum_of_bin(sums, COLUMNS, i, lane);
        BARRIER();
        f32 norm = SQRT(sum_of_values(values, partial, 1, lane));
        for (i32 i = lane; i < DIMENSION; i += LANES) values[i] = MIN_F(values[i], 0.2f * norm);
        BARRIER();
        f32 total = sum_of_values(values, partial, !ROOT, lane);
        write_descriptor(descriptors + (u64)rank * VALUES, values, norm, total, lane);
        // Lanes still read what the next keypoint overwrites.
        BARRIER();
#endif
    }
}
