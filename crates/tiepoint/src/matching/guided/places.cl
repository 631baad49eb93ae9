// The search for nearest neighbours among the pairs allowed by a model that predicts points. The points of each side
// (predicted for A, own for B) are in linked lists, one for each slot of a hash table of square cells; a feature is
// compared with those in the cells that its circle intersects. Lists have no order, but of equally near features the
// one with the smallest index is the nearest, so the result does not depend on the order. The test is that of
// guided/mod.rs in f64.
//
// Also from Rust, besides those of regions.h: LANES; PROJECTIVE, 1 for a homography, 0 for an affine map.

// x is NaN if the feature cannot match.
typedef struct {
    f64 x, y;
} Place;

// The column or row of cells in which a coordinate lies; monotonic in the coordinate.
FUNCTION i32 cell_of(f64 v, f64 cells_a_pixel) {
    f64 cell = floor(v * cells_a_pixel), most = 1073741824.0;
    return (i32)(cell < -most ? -most : (cell > most ? most : cell));
}

// The slot of a cell in the hash table. The number of slots is a power of two.
FUNCTION u32 slot_of(i32 column, i32 row, u32 slots) {
    u32 mixed = (u32)column * 0x9e3779b1u ^ (u32)row * 0x85ebca77u;
    return (mixed ^ mixed >> 15) & (slots - 1);
}

// Adds features to the lists, one feature for each lane. Links count from 1; 0 ends a list.
KERNEL(fill_cells) {
    const f64 *m = args.model;
    u32 features = at_most(*count, args.capacity), i = (u32)GROUP_X * LANES + (u32)LANE_X;
    if (i < 2) regions[i] = i == 0 ? features : 0;
    if (i >= features) return;
    Place place;
    place.x = (f64)keypoints[i].x;
    place.y = (f64)keypoints[i].y;
    i32 allowed = 1;
    if (args.predicted != 0) {
        f64 x = place.x, y = place.y;
        f64 u = m[0] * x + m[1] * y + m[2], v = m[3] * x + m[4] * y + m[5];
#if PROJECTIVE
        f64 w = m[6] * x + m[7] * y + m[8];
        allowed = (m[8] == 1.0 ? w : fabs(w)) > 1e-12;
        u = u / w;
        v = v / w;
#endif
        place.x = u;
        place.y = v;
    }
    allowed = allowed && IS_FINITE_F64(place.x) && IS_FINITE_F64(place.y);
    if (allowed) {
        i32 column = cell_of(place.x, args.cells_a_pixel), row = cell_of(place.y, args.cells_a_pixel);
        next[i] = ATOMIC_EXCHANGE(&heads[slot_of(column, row, args.slots)], i + 1);
    } else {
        place.x = NO_NUMBER;
    }
    places[i] = place;
}

// For every feature of a side finds the two nearest of the other side; one lane for each feature.
KERNEL(search_near) {
    u32 i = (u32)GROUP_X * LANES + (u32)LANE_X;
    if (i >= at_most(*count, args.capacity)) return;
    Best best = best_none();
    Place own = places[i];
    if (IS_FINITE_F64(own.x)) {
        // A little more than the radius, so that all features that pass the test are in these cells despite rounding.
        f64 reach = args.radius * (1.0 + 1e-9), cells = args.cells_a_pixel;
        f64 reach_x = reach + fabs(own.x) * 1e-12, reach_y = reach + fabs(own.y) * 1e-12;
        i32 left = cell_of(own.x - reach_x, cells), right = cell_of(own.x + reach_x, cells);
        i32 top = cell_of(own.y - reach_y, cells), bottom = cell_of(own.y + reach_y, cells);
        i32 is_bright = keypoints[i].sign >= 0;
        for (i32 row = top; row <= bottom; row++) {
            for (i32 column = left; column <= right; column++) {
                u32 link = heads[slot_of(column, row, args.slots)];
                while (link != 0) {
                    u32 j = link - 1;
                    Place other = other_places[j];
                    link = next[j];
                    // A feature of another cell with the same slot: that cell is searched itself, or is too far away.
                    if (cell_of(other.x, cells) != column || cell_of(other.y, cells) != row) continue;
                    f64 x = other.x - own.x, y = other.y - own.y;
                    if (!(x * x + y * y <= args.radius * args.radius)) continue;
                    if (args.by_sign != 0 && (other_keypoints[j].sign >= 0) != is_bright) continue;
                    Best one = best_none();
                    one.first = distance_of(own_values + (u64)i * DIMENSION, other_values + (u64)j * DIMENSION);
                    one.index = j;
                    if (one.first < FAR) best = best_of(best, one);
                }
            }
        }
    }
    best_store(nearest + 3 * ((u64)args.first + i), best);
}
