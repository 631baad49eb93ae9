// Sums of wavelets from an integral image, as in integral.rs in this folder.
//
// SUM is u32 or u64, SIGNED its two's complement. `sums` points at I(0, 0) of an image, `plane` has its size and
// pitch.

FUNCTION f32 signed_f32(SUM sum) { return (f32)(SIGNED)sum; }

// The Haar wavelets of half side `reach` about the corner (x, y): right minus left half, lower minus upper half. Zero
// when they leave the image.
FUNCTION void haar(const GLOBAL SUM *RESTRICT sums, SumsPlane plane, i32 x, i32 y, i32 reach, SUM *dx, SUM *dy) {
    *dx = 0, *dy = 0;
    if (x < reach || x > plane.width - reach || y < reach || y > plane.height - reach) return;
    const GLOBAL SUM *middle = sums + (i64)y * plane.pitch + x;
    const GLOBAL SUM *top = middle - (i64)reach * plane.pitch;
    const GLOBAL SUM *bottom = middle + (i64)reach * plane.pitch;
    SUM a = top[-reach], b = top[0], c = top[reach];
    SUM d = middle[-reach], e = middle[reach];
    SUM f = bottom[-reach], g = bottom[0], h = bottom[reach];
    *dx = (h - c) + (f - a) - 2 * (g - b);
    *dy = (h - f) + (c - a) - 2 * (e - d);
}

// The number of keypoints of this group's image, at most `most`.
FUNCTION u32 wanted(const GLOBAL u32 *counts, u32 capacity, u32 most) {
    u32 room = capacity < most ? capacity : most;
    return counts[GROUP_Y] < room ? counts[GROUP_Y] : room;
}
