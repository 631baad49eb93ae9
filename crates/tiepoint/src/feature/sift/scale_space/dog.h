// Differences of Gaussians, subtracted where they are needed: levels are read anyway, and stored once.

// The Gaussian levels of one octave, as far as a search reads them.
typedef struct {
    // Level 0; the others follow.
    const GLOBAL f32 *values;
    u64 level_len;
    i32 width, pitch, number;
    f32 pixel;
    // The first row's number in the octave of the whole image.
    i32 first_row;
    // Rows in which points may lie, given the image's border. For a band these may lie outside its own rows.
    i32 top, bottom;
} Levels;

// DoG of layer `layer` at (x, y).
FUNCTION f32 dog(const Levels *levels, i32 layer, i32 x, i32 y) {
    const GLOBAL f32 *at = levels->values + (u64)layer * levels->level_len + (u64)y * levels->pitch + x;
    return at[levels->level_len] - at[0];
}
