// The directions of keypoints; mod.rs describes what is computed. One group a point.

// Whether a bin of the smoothed histogram is a peak of at least 80 % of the greatest.
FUNCTION i32 is_peak(const LOCAL_POINTER i64 *histogram, i32 bin, i64 greatest) {
    i64 own = histogram[bin];
    i64 left = histogram[bin == 0 ? BINS - 1 : bin - 1], right = histogram[bin == BINS - 1 ? 0 : bin + 1];
    return own > left && own > right && 5 * own >= 4 * greatest;
}

// The angle of a peak, by a parabola through three bins.
FUNCTION f32 peak_angle(const LOCAL_POINTER i64 *histogram, i32 bin) {
    i64 own = histogram[bin];
    i64 left = histogram[bin == 0 ? BINS - 1 : bin - 1], right = histogram[bin == BINS - 1 ? 0 : bin + 1];
    f32 offset = 0.5f * (f32)(left - right) / (f32)(left - 2 * own + right);
    f32 position = (f32)bin + offset + CENTRE;
    position = position < 0.0f ? position + (f32)BINS : position;
    f32 angle = position * RADIANS_PER_BIN;
    return angle < TURN ? angle : 0.0f;
}

// Adds a pixel's gradient to the lane's column.
FUNCTION void add_direction(LOCAL_POINTER u32 *column, const Sample *s, f32 x, f32 y, f32 falloff) {
    f32 gx = s->right - s->left, gy = s->below - s->above;
    f32 dx = (f32)s->x - x, dy = (f32)s->y - y;
    f32 weight = exp_f32(FMA(dx, dx, dy * dy) * falloff);
    f32 strength = SQRT(FMA(gx, gx, gy * gy)) * weight * UNIT;
    f32 position = atan2_f32(gy, gx) * BINS_PER_RADIAN;
#if EXACT
    // Bin b is centred at b + 1/2; the part beyond its centre belongs to the next.
    f32 shifted = position + ((f32)BINS - 0.5f);
    i32 nearest = to_integer(shifted - 0.5f);
    i32 second = to_integer(strength * (shifted - (f32)nearest));
    i32 bin = nearest >= BINS ? nearest - BINS : nearest;
    i32 next = bin == BINS - 1 ? 0 : bin + 1;
    u32 sum = column[bin * LANES], sum_of_next = column[next * LANES];
    column[bin * LANES] = sum + (u32)(to_integer(strength) - second);
    column[next * LANES] = sum_of_next + (u32)second;
#else
    i32 nearest = to_integer(position);
    column[(nearest >= BINS ? nearest - BINS : nearest) * LANES] += (u32)to_integer(strength);
#endif
}

// Adds the gradients of a lane's pixels of a window to its column. The next pixel is read while one is processed.
FUNCTION void add_window(LOCAL_POINTER u32 *column, const Point *point, f32 sigma, i32 lane) {
    f32 falloff = -0.5f / (sigma * sigma);
    i32 radius = (i32)ROUND_EVEN(3.0f * sigma);
    // OpenCV measures distances from the nearest pixel.
    f32 x = EXACT ? point->x : ROUND_EVEN(point->x), y = EXACT ? point->y : ROUND_EVEN(point->y);
    Span columns = around(point->x, radius, point->width), rows = around(point->y, radius, point->height);
    i32 width = columns.high - columns.low, n = width * (rows.high - rows.low);
    if (lane >= n) return;
    i32 rows_a_step = LANES / width, columns_a_step = LANES % width;
    i32 row = lane / width, at = lane % width;
    Sample next = sample_at(point, columns.low + at, rows.low + row);
    for (i32 s = lane; s < n; s += LANES) {
        Sample sample = next;
        if (s + LANES < n) {
            row += rows_a_step;
            at += columns_a_step;
            if (at >= width) {
                at -= width;
                row++;
            }
            next = sample_at(point, columns.low + at, rows.low + row);
        }
        add_direction(column, &sample, x, y, falloff);
    }
}

// Smooths the histogram, one bin a lane; VLFeat's six passes also change `histogram`.
FUNCTION void smooth(LOCAL_POINTER i64 *smoothed, LOCAL_POINTER i64 *histogram, i32 lane) {
#if SMOOTHED_SIX_TIMES
    for (i32 pass = 0; pass < 3; pass++) {
        for (i32 bin = lane; bin < BINS; bin += LANES)
            smoothed[bin] = histogram[(bin + BINS - 1) % BINS] + histogram[bin] + histogram[(bin + 1) % BINS];
        BARRIER();
        for (i32 bin = lane; bin < BINS; bin += LANES)
            histogram[bin] = smoothed[(bin + BINS - 1) % BINS] + smoothed[bin] + smoothed[(bin + 1) % BINS];
        BARRIER();
    }
    for (i32 bin = lane; bin < BINS; bin += LANES) smoothed[bin] = histogram[bin];
#else
    for (i32 bin = lane; bin < BINS; bin += LANES)
        smoothed[bin] = histogram[(bin + BINS - 2) % BINS] + histogram[(bin + 2) % BINS]
            + 4 * (histogram[(bin + BINS - 1) % BINS] + histogram[(bin + 1) % BINS]) + 6 * histogram[bin];
#endif
    BARRIER();
}

// Appends the point once for every peak of its smoothed histogram, with one lane for each bin.
FUNCTION void append_peaks(GLOBAL Keypoint *features, GLOBAL u32 *feature_count, u32 feature_capacity,
                           const GLOBAL Keypoint *point, const LOCAL_POINTER i64 *smoothed, i32 lane) {
    i64 greatest = smoothed[0];
    for (i32 bin = 1; bin < BINS; bin++) greatest = smoothed[bin] > greatest ? smoothed[bin] : greatest;
    for (i32 bin = lane; bin < BINS; bin += LANES) {
        if (!is_peak(smoothed, bin, greatest)) continue;
        i32 before = 0;
#if MOST_ANGLES < BINS
        for (i32 b = 0; b < bin; b++) before += is_peak(smoothed, b, greatest);
#endif
        if (before >= MOST_ANGLES) continue;
        u32 slot = ATOMIC_ADD(feature_count, 1u);
        if (slot < feature_capacity) {
            Keypoint feature = *point;
            feature.angle = peak_angle(smoothed, bin);
            features[slot] = feature;
        }
    }
}

// Appends every point with each of its directions to the features of its image, the second dimension.
KERNEL(orient) {
    const u32 feature_capacity = args.feature_capacity, point_capacity = args.point_capacity;
    LOCAL u32 sums[BINS * LANES];
    LOCAL i64 histogram[BINS];
    LOCAL i64 smoothed[BINS];
    i32 lane = LANE_X;
    u32 count = point_counts[GROUP_Y] < point_capacity ? point_counts[GROUP_Y] : point_capacity;
    points += (u64)GROUP_Y * point_capacity;
    features += (u64)GROUP_Y * feature_capacity;
    levels += (u64)GROUP_Y * args.image_stride;
    LOCAL_POINTER u32 *column = sums + lane;
    for (u32 i = (u32)GROUP_X; i < count; i += (u32)GROUPS_X) {
        Point point = point_of(points + i, levels, octaves);
        for (i32 bin = 0; bin < BINS; bin++) column[bin * LANES] = 0;
        add_window(column, &point, 1.5f * point.scale, lane);
        BARRIER();
        for (i32 bin = lane; bin < BINS; bin += LANES) histogram[bin] = (i64)sum_of_bin(sums, LANES, bin, lane);
        BARRIER();
        smooth(smoothed, histogram, lane);
        append_peaks(features, feature_counts + GROUP_Y, feature_capacity, points + i, smoothed, lane);
        BARRIER();
    }
}
