// Moves disparity edges to edges of the picture by a vote: mod.rs.

KERNEL(vote) {
    const Plane plane = args.plane, picture_plane = args.picture_plane;
    const i32 x = PIXEL_X, y = PIXEL_Y, channels = args.channels, limit = args.limit;
    if (x >= plane.row || y >= plane.height) return;
    const GLOBAL f32 *map = from + plane.step * (u64)GROUP_Z;
    const GLOBAL u8 *colours = picture + picture_plane.step * (u64)GROUP_Z;
    const i32 left = MAX_I(x - COLUMNS / 2, 0), right = MIN_I(x + COLUMNS / 2, plane.row - 1);
    const i32 top = MAX_I(y - ROWS / 2, 0), bottom = MIN_I(y + ROWS / 2, plane.height - 1);
    const f32 centre = map[(u64)y * plane.pitch + x];
    f32 low = INVALID, high = -INVALID, chosen = ABS(centre) < INVALID ? centre : INVALID;
    if (chosen < INVALID) {
        for (i32 v = top; v <= bottom; v++) {
            for (i32 u = left; u <= right; u++) {
                const f32 d = map[(u64)v * plane.pitch + u];
                if (ABS(d) < INVALID) low = MIN_F(low, d), high = MAX_F(high, d);
            }
        }
    }
    if (high - low > JUMP) {
        const f32 middle = (low + high) * 0.5f, quarter = (high - low) * 0.25f;
        const GLOBAL u8 *own_colour = colours + ((u64)y * picture_plane.pitch + x * channels);
        i32 valid = 0, between = 0, own = 0, other = 0, best = 0;
        f32 there = centre;
        for (i32 v = top; v <= bottom; v++) {
            for (i32 u = left; u <= right; u++) {
                const f32 d = map[(u64)v * plane.pitch + u];
                if (!(ABS(d) < INVALID)) continue;
                valid++;
                if (ABS(d - middle) < quarter) between++;
                const GLOBAL u8 *colour = colours + ((u64)v * picture_plane.pitch + u * channels);
                i32 weight = limit;
                for (i32 c = 0; c < channels; c++) {
                    const i32 difference = (i32)colour[c] - (i32)own_colour[c];
                    weight -= 3 / channels * (difference < 0 ? -difference : difference);
                }
                if (weight <= 0) continue;
                if ((d <= middle) == (centre <= middle)) {
                    own += weight;
                    continue;
                }
                other += weight;
                const i32 rank = weight * NEARNESS - ((u - x) * (u - x) + (v - y) * (v - y));
                if (rank > best) best = rank, there = d;
            }
        }
        if (other > own && 4 * between <= valid) chosen = there;
    }
    to[plane.step * (u64)GROUP_Z + (u64)y * plane.pitch + x] = chosen;
}
