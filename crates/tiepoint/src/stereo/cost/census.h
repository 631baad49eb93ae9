// The census of a pixel: census.rs. COMPARISONS is COMPARE(bit, ax, ay, bx, by) for every pair of pixels.

#define COMPARE(bit, ax, ay, bx, by) \
    descriptor[(bit) / 32] |= \
        (u32)(grey_at(view, ax, ay) + view->rounding < grey_at(view, bx, by)) << ((bit) % 32);

FUNCTION void census(u32 *descriptor, const View *view) { COMPARISONS }
