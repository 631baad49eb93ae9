// The grey of a colour image that corresponds to a grey image: mod.rs.

// The state of a search: the best projection so far, the best standard, the step of the weights (0 before the standards
// are tried), and whether the search is over. A projection is the weights of red, green and blue, and whether it uses
// squares.
#define OWN 0
#define STANDARD 4
#define STEP 8
#define OVER 9

CONSTANT u32 standard_weights[] = STANDARDS;
CONSTANT i32 ways[] = WAYS;

typedef struct { u32 weights[3]; u32 squares; } Projection;

FUNCTION Projection projection_at(const GLOBAL u32 *state, i32 place) {
    Projection p;
    UNROLL
    for (i32 c = 0; c < 3; c++) p.weights[c] = state[place + c];
    p.squares = state[place + 3];
    return p;
}

// The candidates of a try: the standards, or the neighbours of the best projection.
FUNCTION Projection candidate(const GLOBAL u32 *state, i32 n) {
    const u32 step = state[STEP];
    Projection p = projection_at(state, OWN);
    if (step == 0u) {
        UNROLL
        for (i32 c = 0; c < 3; c++) p.weights[c] = standard_weights[n * 3 % (CANDIDATES / 2 * 3) + c];
        p.squares = n < CANDIDATES / 2 ? 0u : 1u;
    } else if (n == 0) {
        p.squares = 1u - p.squares;
    } else {
        const i32 from = ways[2 * n - 2], to = ways[2 * n - 1];
        u32 moved = 0u;
        UNROLL
        for (i32 c = 0; c < 3; c++) moved = c == from ? (p.weights[c] < step ? p.weights[c] : step) : moved;
        UNROLL
        for (i32 c = 0; c < 3; c++) p.weights[c] += c == to ? moved : (c == from ? 0u - moved : 0u);
    }
    return p;
}

FUNCTION i32 candidates(const GLOBAL u32 *state) { return state[STEP] == 0u ? CANDIDATES : CANDIDATES - 1; }

FUNCTION u32 value_of(const Projection *p, const u32 colour[3]) {
    u32 sum = 0u;
    UNROLL
    for (i32 c = 0; c < 3; c++) sum += p->weights[c] * colour[c] * (p->squares != 0u ? colour[c] : 1u);
    if (p->squares == 0u) return (sum + UNIT / 2u) / UNIT;
    // The root of sum / UNIT, rounded to nearest: r with (2 r - 1)^2 <= 4 sum / UNIT < (2 r + 1)^2.
    u32 root = (u32)(SQRT((f32)sum / (f32)UNIT) + 0.5f);
    if (root > 0u && (2u * root - 1u) * (2u * root - 1u) * UNIT > 4u * sum) root--;
    if ((2u * root + 1u) * (2u * root + 1u) * UNIT <= 4u * sum) root++;
    return root;
}

// Corresponding values of the samples: first all colours, then all greys, which are VALUES where nothing corresponds. A
// group is a part of a sampled row.
KERNEL(sample) {
    const i32 width = args.grey_plane.row, x = GROUP_X * VALUES + LANE_X, y = GROUP_Y * args.rows_apart;
    if (x >= width) return;
    const f32 found = disparity[(u64)(y / 2) * args.disparity_plane.pitch + x / 2];
    const f32 at = (f32)x - 2.0f * found + 0.5f;
    const i32 there = ABS(found) < INVALID ? (i32)MIN_F(MAX_F(at, 0.0f), (f32)(width - 1)) : 0;
    const i32 seen = args.mask_plane.row == 0 || mask[(u64)y * args.mask_plane.pitch + there] != 0;
    const GLOBAL u8 *colour = colours + (u64)y * args.colours_plane.pitch + 3 * (args.of_left ? x : there);
    const u32 other = grey[(u64)y * args.grey_plane.pitch + (args.of_left ? there : x)];
    const u64 i = (u64)GROUP_Y * width + x, all = (u64)GROUPS_Y * width;
    samples[i] = colour[0] | (u32)colour[1] << 8 | (u32)colour[2] << 16;
    samples[all + i] = ABS(found) < INVALID && seen ? other : VALUES;
}

// The joint histogram of each candidate, rows by the candidate's values, and the number of counted pixels. A group
// counts a part of the samples for a candidate.
KERNEL(count) {
    LOCAL u32 in_all;
    const i32 i = GROUP_X * VALUES + LANE_X, n = GROUP_Y;
    if (state[OVER] != 0u || n >= candidates(state)) return;
    if (LANE_X == 0) in_all = 0u;
    BARRIER();
    tally += (u64)n * TALLY;
    const u32 other = i < args.pixels ? samples[args.pixels + i] : VALUES;
    if (other < VALUES) {
        const Projection p = candidate(state, n);
        const u32 packed = samples[i], colour[3] = { packed & 255u, packed >> 8 & 255u, packed >> 16 };
        ATOMIC_ADD(&tally[value_of(&p, colour) * VALUES + other], 1u);
        ATOMIC_ADD(&in_all, 1u);
    }
    BARRIER();
    if (LANE_X == 0 && in_all > 0u) ATOMIC_ADD(&tally[TALLY - 1], in_all);
}

// Moves to the first of the best candidates, or halves the step if none is better. Run by one group.
KERNEL(choose) {
    LOCAL f64 sums[VALUES];
    if (state[OVER] != 0u) return;
    i32 first = 0;
    f64 most = 0.0;
    for (i32 n = 0; n < candidates(state); n++) {
        sums[LANE_X] = rows[n * VALUES + LANE_X];
        for (i32 far = VALUES / 2; far > 0; far /= 2) {
            BARRIER();
            if (LANE_X < far) sums[LANE_X] += sums[LANE_X + far];
        }
        BARRIER();
        const u32 total = tally[(u64)n * TALLY + TALLY - 1];
        const f64 information = -sums[0] / (f64)(total > 1u ? total : 1u);
        if (n == 0 || information > most) {
            first = n;
            most = information;
        }
        BARRIER();
    }
    if (LANE_X > 0) return;
    const u32 step = state[STEP];
    if (step == 0u || most > information[0]) {
        const Projection p = candidate(state, first);
        for (i32 place = OWN; place <= (step == 0u ? STANDARD : OWN); place += STANDARD - OWN) {
            for (i32 c = 0; c < 3; c++) state[place + c] = p.weights[c];
            state[place + 3] = p.squares;
        }
        information[0] = most;
        if (step == 0u) {
            information[1] = most;
            state[STEP] = FIRST_STEP;
        }
    } else if (step == LAST_STEP) {
        state[OVER] = 1u;
    } else {
        state[STEP] = step / 2u;
    }
}

// The values of the projection that a search has found.
KERNEL(project) {
    const Plane plane = args.plane;
    const i32 x = PIXEL_X, y = PIXEL_Y;
    if (x >= plane.row || y >= plane.height) return;
    const Projection p = projection_at(state, information[0] > BETTER * information[1] ? OWN : STANDARD);
    const GLOBAL u8 *from = colours + (u64)y * args.colours_plane.pitch + 3 * x;
    const u32 colour[3] = { from[0], from[1], from[2] };
    out[(u64)y * plane.pitch + x] = (u8)value_of(&p, colour);
}
