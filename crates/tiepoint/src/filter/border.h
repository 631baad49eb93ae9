// The index inside 0..n that stands for `i`, or -1 where the border rule gives none. Bits as `Border::index`.
FUNCTION i32 border_index(i32 i, i32 n) {
    if (i >= 0 && i < n) return i;
#if BORDER == CLAMP
    return i < 0 ? 0 : n - 1;
#elif BORDER == REFLECT
    if (n == 1) return 0;
    i32 period = 2 * (n - 1);
    i %= period;
    i = i < 0 ? i + period : i;
    return i < n ? i : period - i;
#else
    return -1;
#endif
}

// The same for an element of a row of `n`, whose pixels have CHANNELS of them.
FUNCTION i32 border_element(i32 i, i32 n) {
    if (i >= 0 && i < n) return i;
    i32 pixel = i >= 0 ? i / CHANNELS : -((CHANNELS - 1 - i) / CHANNELS);
    i32 inside = border_index(pixel, n / CHANNELS);
    return inside < 0 ? -1 : inside * CHANNELS + (i - pixel * CHANNELS);
}

// Whether the window of UP, DOWN rows and LEFT, RIGHT elements about element (x, y) leaves the image.
FUNCTION i32 window_leaves(i32 x, i32 y, i32 row, i32 height) {
    return x < LEFT || x + RIGHT >= row || y < UP || y + DOWN >= height;
}
