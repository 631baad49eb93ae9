// What the descriptors of a view are made from: its grey, and what the cost compares in 8 bits.
typedef struct {
    const GLOBAL PIXEL *grey;
    const GLOBAL u8 *compared;
    i32 grey_pitch, compared_pitch;
    i32 width, height;
    // Differences of grey up to this may come from rounding alone.
    PIXEL rounding;
} View;

// The grey of the nearest pixel inside.
FUNCTION PIXEL grey_at(const View *view, i32 x, i32 y) {
    x = MIN_I(MAX_I(x, 0), view->width - 1);
    y = MIN_I(MAX_I(y, 0), view->height - 1);
    return view->grey[(u64)y * view->grey_pitch + x];
}

// A channel of what is compared.
FUNCTION u32 compared_at(const View *view, i32 x, i32 y, i32 channels, i32 channel) {
    return view->compared[(u64)y * view->compared_pitch + (u64)x * channels + channel];
}
