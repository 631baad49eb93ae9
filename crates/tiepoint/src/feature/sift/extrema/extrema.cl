// Extrema among the 26 neighbours in position and scale, refined in the same launch. Contract and ties as in mod.rs.

FUNCTION Levels levels_of(const LOCAL_POINTER Octave *octave, const GLOBAL f32 *image) {
    Levels levels;
    levels.width = octave->width;
    levels.pitch = octave->pitch;
    levels.number = octave->number;
    levels.pixel = octave->pixel;
    levels.first_row = octave->first_row;
    levels.top = BORDER - octave->first_row;
    levels.bottom = octave->whole_height - BORDER - octave->first_row;
    levels.level_len = (u64)octave->pitch * octave->height;
    levels.values = image + octave->offset;
    return levels;
}

// Whether |D| at (x, y) beats the neighbours that a lane does not hold itself. The point's own layer is compared
// first: blurred images are smooth, and few pixels get beyond it.
FUNCTION i32 beats_the_rest(const Levels *levels, i32 layer, i32 x, i32 y, f32 value) {
    f32 size = ABS(value), sign = value < 0.0f ? -1.0f : 1.0f;
    if (!(size > dog(levels, layer, x - 1, y) * sign && size >= dog(levels, layer, x + 1, y) * sign)) return 0;
    if (!(size > dog(levels, layer, x - 1, y - 1) * sign && size > dog(levels, layer, x + 1, y - 1) * sign)) return 0;
    if (!(size >= dog(levels, layer, x - 1, y + 1) * sign && size >= dog(levels, layer, x + 1, y + 1) * sign)) return 0;
    for (i32 i = 0; i < 9; i++) {
        i32 nx = x + i % 3 - 1, ny = y + i / 3 - 1;
        f32 below = dog(levels, layer - 1, nx, ny) * sign, above = dog(levels, layer + 1, nx, ny) * sign;
        if (!(size > below && size >= above)) return 0;
    }
    return 1;
}

// A candidate takes 16 bits: column and row in the group's tile, and layer.
#define CANDIDATE(column, row, layer) (u16)((column) | (row) << 8 | (layer) << 12)

// One group searches 256 columns and up to 16 rows of an octave. A lane goes down one column and holds the DoG of three
// rows: a pixel is read once, and comparing it with the threshold and the neighbours above, below, finer and coarser
// needs no memory access. The few per cent that remain are compared with the other neighbours, which adjacent lanes
// have just read into the cache. Extrema are collected in local memory, so that lanes refine them in parallel. Of 2x2x2
// pixels at most one is a maximum and one a minimum, so the list is always long enough.
KERNEL(find_points) {
    const u32 capacity = args.capacity;
    const f32 least_candidate = args.thresholds.least_candidate;
    LOCAL u16 candidates[SEARCH_COLUMNS * SEARCH_ROWS / 2 * ((LEVELS + 1) / 2)];
    LOCAL u32 found;
    LOCAL Octave octave;
    i32 lane = LANE_X;
    if (lane == 0) {
        i32 o = 0;
        while (o + 1 < args.octave_count && GROUP_X >= octaves[o + 1].first_group) o++;
        octave = octaves[o];
        found = 0;
    }
    BARRIER();
    values += (u64)GROUP_Z * args.image_stride;
    Levels levels = levels_of(&octave, values);
    i32 group = GROUP_X - octave.first_group;
    i32 tiles = (levels.width + SEARCH_COLUMNS - 1) / SEARCH_COLUMNS;
    i32 x0 = group % tiles * SEARCH_COLUMNS, y0 = group / tiles * SEARCH_ROWS;
    i32 first = MAX_I(MAX_I(y0, octave.taken_from), levels.top);
    i32 end = MIN_I(MIN_I(y0 + SEARCH_ROWS, octave.taken_to), levels.bottom);
    i32 x = x0 + lane;
    if (x >= BORDER && x < levels.width - BORDER && first < end) {
        f32 above[LEVELS + 2], own[LEVELS + 2], below[LEVELS + 2];
        // The next row is read while a row is searched.
        f32 coming[LEVELS + 3];
        const GLOBAL f32 *at = levels.values + (u64)(first - 1) * levels.pitch + x;
        f32 finer = at[0], next_finer = at[levels.pitch];
        UNROLL
        for (i32 l = 0; l < LEVELS + 2; l++) {
            f32 level = at[(l + 1) * levels.level_len], next = at[(l + 1) * levels.level_len + levels.pitch];
            above[l] = level - finer;
            own[l] = next - next_finer;
            finer = level;
            next_finer = next;
        }
        at += 2 * levels.pitch;
        UNROLL
        for (i32 l = 0; l < LEVELS + 3; l++) coming[l] = at[l * levels.level_len];
        for (i32 y = first; y < end; y++) {
            UNROLL
            for (i32 l = 0; l < LEVELS + 2; l++) below[l] = coming[l + 1] - coming[l];
            at += levels.pitch;
            if (y + 1 < end) {
                UNROLL
                for (i32 l = 0; l < LEVELS + 3; l++) coming[l] = at[l * levels.level_len];
            }
            UNROLL
            for (i32 l = 1; l <= LEVELS; l++) {
                f32 value = own[l], size = ABS(value);
                if (size < least_candidate) continue;
                f32 sign = value < 0.0f ? -1.0f : 1.0f;
                i32 best = size > own[l - 1] * sign && size >= own[l + 1] * sign && size > above[l] * sign &&
                           size >= below[l] * sign;
                if (best && beats_the_rest(&levels, l, x, y, value)) {
                    candidates[ATOMIC_ADD(&found, 1u)] = CANDIDATE(lane, y - y0, l);
                }
            }
            UNROLL
            for (i32 l = 0; l < LEVELS + 2; l++) {
                above[l] = own[l];
                own[l] = below[l];
            }
        }
    }
    BARRIER();
    // Read again, so that values which only refinement needs hold no registers during the search.
    levels = levels_of(&octave, values);
    points += (u64)GROUP_Z * capacity;
    for (u32 i = (u32)lane; i < found; i += SEARCH_COLUMNS) {
        u32 candidate = candidates[i];
        i32 column = x0 + (i32)(candidate & 255u), row = y0 + (i32)(candidate >> 8 & 15u);
        Keypoint point;
        i32 layer = (i32)(candidate >> 12);
        Thresholds thresholds = args.thresholds;
        if (!refine(&levels, column, row, layer, thresholds.least_contrast, thresholds.edge, thresholds.sigma, &point)) continue;
        if (args.mask_pitch > 0 && !unmasked(mask, args.mask_pitch, args.width, args.height, &point)) continue;
        u32 slot = ATOMIC_ADD(counts + GROUP_Z, 1u);
        if (slot < capacity) points[slot] = point;
    }
}
