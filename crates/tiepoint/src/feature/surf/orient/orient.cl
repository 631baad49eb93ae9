// Directions of keypoints, as in mod.rs in this folder: one group for each keypoint, with one lane for each sample of
// the disc, then one for each bin, then one for each window. Keypoints are written in the total order.

#if !UPRIGHT
// The wavelet of this lane's sample of the disc about a keypoint: its bin, and its sums times the sample's weight.
FUNCTION void sample_wavelet(LOCAL_POINTER i32 *bins, LOCAL_POINTER i64 *weighted_x, LOCAL_POINTER i64 *weighted_y,
                             const Keypoint *k, const GLOBAL SUM *RESTRICT sums, SumsPlane plane,
                             const GLOBAL f32 *RESTRICT disc, i32 lane) {
#if OPENSURF
    f32 s = MAX_F(ROUND_EVEN(k->scale), 1.0f);
    f32 x = ROUND_EVEN(k->x), y = ROUND_EVEN(k->y);
    i32 reach = 2 * (i32)s;
#else
    f32 s = k->scale, x = k->x + 0.5f, y = k->y + 0.5f;
    i32 reach = MAX_I((i32)ROUND_EVEN(2.0f * k->scale), 1);
#endif
    // Columns, rows and weights of the disc's samples.
    i32 cx = (i32)ROUND_EVEN(FMA(disc[lane], s, x));
    i32 cy = (i32)ROUND_EVEN(FMA(disc[ORIENT_GROUP + lane], s, y));
    i64 weight = (i64)disc[2 * ORIENT_GROUP + lane];
    SUM dx, dy;
    haar(sums, plane, cx, cy, reach, &dx, &dy);
    i32 bin = (i32)(atan2_f32(signed_f32(dy), signed_f32(dx)) * BINS_PER_RADIAN);
    bins[lane] = bin < BINS - 1 ? bin : BINS - 1;
    weighted_x[lane] = weight * (i64)(SIGNED)dx;
    weighted_y[lane] = weight * (i64)(SIGNED)dy;
    BARRIER();
}

// The sums of all samples of a bin, one bin a lane.
FUNCTION void sum_bins(LOCAL_POINTER i64 *bin_x, LOCAL_POINTER i64 *bin_y, const LOCAL_POINTER i32 *bins,
                       const LOCAL_POINTER i64 *weighted_x, const LOCAL_POINTER i64 *weighted_y, i32 lane) {
    if (lane < BINS) {
        i64 sum_x = 0, sum_y = 0;
        for (i32 n = 0; n < SAMPLES_OF_DISC; n++) {
            if (bins[n] == lane) {
                sum_x += weighted_x[n];
                sum_y += weighted_y[n];
            }
        }
        bin_x[lane] = sum_x;
        bin_y[lane] = sum_y;
    }
    BARRIER();
}

// The sum of every window of a sixth of the bins, one window a lane, and the square of its length.
FUNCTION void sum_windows(LOCAL_POINTER f32 *window_x, LOCAL_POINTER f32 *window_y, LOCAL_POINTER f32 *length2,
                          const LOCAL_POINTER i64 *bin_x, const LOCAL_POINTER i64 *bin_y, i32 lane) {
    length2[lane] = -1.0f;
    if (lane < BINS) {
        i64 sum_x = 0, sum_y = 0;
        for (i32 n = 0; n < BINS / 6; n++) {
            i32 other = lane + n < BINS ? lane + n : lane + n - BINS;
            sum_x += bin_x[other];
            sum_y += bin_y[other];
        }
        f32 to_x = (f32)sum_x, to_y = (f32)sum_y;
        window_x[lane] = to_x;
        window_y[lane] = to_y;
        length2[lane] = FMA(to_x, to_x, to_y * to_y);
    }
}

// Finds the longest window, the first of equal ones; its squared length goes to length2[0], its number to windows[0].
FUNCTION void find_longest(LOCAL_POINTER f32 *length2, LOCAL_POINTER i32 *windows, i32 lane) {
    windows[lane] = lane;
    BARRIER();
    for (i32 apart = ORIENT_GROUP / 2; apart > 0; apart /= 2) {
        if (lane < apart) {
            f32 own = length2[lane], other = length2[lane + apart];
            i32 is_better = other > own || (other == own && windows[lane + apart] < windows[lane]);
            length2[lane] = is_better ? other : own;
            windows[lane] = is_better ? windows[lane + apart] : windows[lane];
        }
        BARRIER();
    }
}
#endif

KERNEL(orient) {
    LOCAL i32 bins[ORIENT_GROUP];
    LOCAL i64 weighted_x[ORIENT_GROUP], weighted_y[ORIENT_GROUP];
    LOCAL i64 bin_x[BINS], bin_y[BINS];
    LOCAL f32 window_x[ORIENT_GROUP], window_y[ORIENT_GROUP], length2[ORIENT_GROUP];
    LOCAL i32 windows[ORIENT_GROUP];
    u32 count = wanted(counts, args.capacity, args.limit);
    u64 first = (u64)GROUP_Y * args.capacity;
    sums += args.plane.origin + (u64)GROUP_Y * args.plane.step;
    i32 lane = LANE_X;
    for (u32 at = (u32)GROUP_X; at < count; at += (u32)GROUPS_X) {
        Keypoint k = keypoints[first + (u32)order[first + at]];
        f32 angle = UPRIGHT_ANGLE, cosine = UPRIGHT_COS, sine = UPRIGHT_SIN;
#if !UPRIGHT
        sample_wavelet(bins, weighted_x, weighted_y, &k, sums, args.plane, disc, lane);
        sum_bins(bin_x, bin_y, bins, weighted_x, weighted_y, lane);
        sum_windows(window_x, window_y, length2, bin_x, bin_y, lane);
        find_longest(length2, windows, lane);
        f32 best = length2[0];
        f32 to_x = best > 0.0f ? window_x[windows[0]] : 1.0f, to_y = best > 0.0f ? window_y[windows[0]] : 0.0f;
        f32 length = best > 0.0f ? SQRT(best) : 1.0f;
        angle = atan2_f32(to_y, to_x);
        cosine = to_x / length;
        sine = to_y / length;
#endif
        if (lane == 0) {
            k.angle = angle;
            oriented[first + at] = k;
            directions[2 * (first + at)] = cosine;
            directions[2 * (first + at) + 1] = sine;
        }
        // The next keypoint overwrites what these lines read only after two more barriers.
    }
}
