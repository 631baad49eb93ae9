// The search for nearest neighbours of matching/gpu/regions.h among the pairs that a fundamental matrix allows: every
// pair is tested, with one lane for each query, and the descriptors of pairs that pass are compared. The test is that
// of guided/mod.rs in f64. It is preceded by a test in f32, which passes every pair that could pass in f64, because
// many cards compute f64 much more slowly.

// What the test needs of a packed row: for A, the line (a, b, c) that the model predicts, and the squared product of
// the radius and the line's norm; for B, the position. x is NaN if the row cannot match.
typedef struct {
    f64 x, y, c, reach;
} Place;

// The same for the test in f32. Lines have norm 1. The sum of the `w` of both rows is the allowed distance plus a bound
// on the rounding error of f32, 2^-20 of the coordinates (2^-22 would suffice); -infinity if the row cannot match.
FUNCTION f32x4 roughly(Place place, f64 radius, i32 predicted, i32 allowed) {
    f32x4 rough;
    f64 scale = 1.0, wrong = 1.0 / 1048576.0;
    if (predicted) scale = 1.0 / sqrt(place.x * place.x + place.y * place.y);
    f64 extent = predicted ? fabs(place.c * scale) : fabs(place.x) + fabs(place.y);
    rough.x = allowed ? (f32)(place.x * scale) : 0.0f;
    rough.y = allowed ? (f32)(place.y * scale) : 0.0f;
    rough.z = allowed ? (f32)(place.c * scale) : 0.0f;
    rough.w = allowed ? (f32)(extent * wrong + (predicted ? radius * (1.0 + wrong) : 0.0)) : FLOAT_OF(0xff800000u);
    return rough;
}

// One group for every block of rows of a side, A where `predicted`. The model is given row by row.
KERNEL(predict_lines) {
    const f64 radius = args.radius, *m = args.model;
    u32 row = (u32)GROUP_X * BLOCK + (u32)LANE_X, dark = dark_start(regions), is_dark = row >= dark;
    if (row - (is_dark ? dark : 0) >= regions[is_dark]) return;
    const GLOBAL Keypoint *keypoint = keypoints + order[row];
    Place place;
    place.x = (f64)keypoint->x;
    place.y = (f64)keypoint->y;
    place.c = 0.0;
    place.reach = radius * radius;
    i32 allowed = 1, predicted = args.predicted != 0;
    if (predicted) {
        f64 x = place.x, y = place.y;
        f64 u = m[0] * x + m[1] * y + m[2], v = m[3] * x + m[4] * y + m[5], w = m[6] * x + m[7] * y + m[8];
        f64 norm2 = u * u + v * v;
        place.x = u;
        place.y = v;
        place.c = w;
        place.reach = place.reach * norm2;
        allowed = norm2 > 0.0 && IS_FINITE_F64(norm2);
    }
    allowed = allowed && IS_FINITE_F64(place.x) && IS_FINITE_F64(place.y);
    rough[row] = roughly(place, radius, predicted, allowed);
    if (!allowed) place.x = NO_NUMBER;
    places[row] = place;
}

// Whether two rows may pass the test in f64. NaN, which occurs if numbers exceed the range of f32, counts as yes.
FUNCTION i32 may_allow(f32x4 predicted, f32x4 place) {
    f32 reach = predicted.w + place.w;
    return !(ABS(FMA(predicted.x, place.x, FMA(predicted.y, place.y, predicted.z))) > reach);
}

FUNCTION i32 allows(Place predicted, Place place) {
    f64 off = predicted.x * place.x + predicted.y * place.y + predicted.c;
    return off * off <= predicted.reach;
}

KERNEL(search_lines) {
    LOCAL f32x4 rough_targets[TILE];
    Work work = work_of(regions_a, regions_b, args.cut);
    if (!work.exists) return;
    GLOBAL u32 *own_found = found + 3 * ((u64)GROUP_X * BLOCK + (u32)LANE_X);
    if (work.from == work.to) {
        best_store(own_found, best_none());
        return;
    }
    u32 lane = (u32)LANE_X, row = work.query + (lane < work.queries ? lane : 0);
    i32 forth = work.forth;
    const GLOBAL u32 *order = forth ? order_b : order_a;
    const GLOBAL Place *places = forth ? places_b : places_a;
    const GLOBAL f32x4 *rough = forth ? rough_b : rough_a;
    Place own = (forth ? places_a : places_b)[row];
    f32x4 rough_own = (forth ? rough_a : rough_b)[row];
    if (lane >= work.queries) rough_own.w = FLOAT_OF(0xff800000u);
    if (lane >= work.queries) own.x = NO_NUMBER;
    const GLOBAL VALUE *query = (forth ? a : b) + (u64)(forth ? order_a : order_b)[row] * DIMENSION;
    const GLOBAL VALUE *targets = forth ? b : a;
    Best best = best_none();
    u32 tile = work.from;
    do {
        u32 first = tile * TILE, here = at_most(work.targets - first, TILE);
        BARRIER();
        if (lane < here) rough_targets[lane] = rough[work.target + first + lane];
        BARRIER();
        for (u32 i = 0; i < here; i++) {
            f32x4 other = rough_targets[i];
            if (!(forth ? may_allow(rough_own, other) : may_allow(other, rough_own))) continue;
            Place exact = places[work.target + first + i];
            if (!(forth ? allows(own, exact) : allows(exact, own))) continue;
            Distance distance = distance_of(query, targets + (u64)order[work.target + first + i] * DIMENSION);
            if (distance < best.second) {
                i32 nearer = distance < best.first;
                best.second = nearer ? best.first : distance;
                best.first = nearer ? distance : best.first;
                best.index = nearer ? first + i : best.index;
            }
        }
    } while (++tile < work.to);
    best_store(own_found, best);
}
