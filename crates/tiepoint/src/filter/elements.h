// Elements of rows, CHANNELS a pixel. A window reaches UP and DOWN rows, LEFT and RIGHT elements from its centre.

// The element that stands for element `i` of a row of `n` by the border rule, or -1.
FUNCTION i32 border_element(i32 i, i32 n) {
    if (i >= 0 && i < n) return i;
    i32 pixel = i >= 0 ? i / CHANNELS : -((CHANNELS - 1 - i) / CHANNELS);
    i32 inside = border_index(pixel, n / CHANNELS);
    return inside < 0 ? -1 : inside * CHANNELS + (i - pixel * CHANNELS);
}

// Whether the window about element (x, y) leaves the image.
FUNCTION i32 window_leaves(i32 x, i32 y, i32 row, i32 height) {
    return x < LEFT || x + RIGHT >= row || y < UP || y + DOWN >= height;
}
