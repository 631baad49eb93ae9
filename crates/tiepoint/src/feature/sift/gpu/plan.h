// The layout of the levels of an octave; `Plan::table` in plan.rs writes the same words.
typedef struct {
    i32 width, height, pitch;
    // -1 is the image at twice its size.
    i32 number;
    // f32s from the start of an image's levels to level 0; level l lies l * pitch * height further on.
    u64 offset;
    // Pixels of the input image in one of the octave: a power of two.
    f32 pixel;
    // Work group that begins the search for this octave's extrema.
    i32 first_group;
    // Of a band: its first row in the octave of the whole image, and how many rows that octave has.
    i32 first_row, whole_height;
    // Rows in which extrema are taken.
    i32 taken_from, taken_to;
} Octave;
