// No descriptor depends on grey that is farther away, in rows or columns.
#define FARTHEST 4
#define NEIGHBOURS (2 * FARTHEST + 1)

// The input of a pixel's descriptor: the grey around it, and the values that the cost compares in 8 bits.
typedef struct {
    // The rows and columns around the pixel; outside the image, those of the nearest pixel inside.
    const GLOBAL PIXEL *rows[NEIGHBOURS];
    i32 columns[NEIGHBOURS];
    const GLOBAL u8 *compared;
    i32 compared_pitch;
    // Differences of grey up to this may come from rounding alone.
    PIXEL rounding;
} View;

FUNCTION void look_around(View *view, const GLOBAL PIXEL *grey, i32 pitch, i32 width, i32 height, i32 x, i32 y) {
    UNROLL
    for (i32 i = 0; i < NEIGHBOURS; i++) {
        view->rows[i] = grey + (u64)MIN_I(MAX_I(y + i - FARTHEST, 0), height - 1) * pitch;
        view->columns[i] = MIN_I(MAX_I(x + i - FARTHEST, 0), width - 1);
    }
}

// The grey at this offset to the right and below.
FUNCTION PIXEL grey_at(const View *view, i32 right, i32 below) {
    return view->rows[FARTHEST + below][view->columns[FARTHEST + right]];
}

// A channel of the compared image.
FUNCTION u32 compared_at(const View *view, i32 x, i32 y, i32 channels, i32 channel) {
    return view->compared[(u64)y * view->compared_pitch + (u64)x * channels + channel];
}
