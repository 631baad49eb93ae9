// The 3x3 maxima of |det|, in any order.

typedef struct {
    i32 x, y;
    f32 response;
    i32 laplacian;
} Blob;

// The sum of a box of pixels, with the border rule outside the image.
FUNCTION f32 box(const GLOBAL PIXEL *image, i32 pitch, i32 width, i32 height, i32 x0, i32 x1, i32 y0, i32 y1) {
    f32 sum = 0.0f;
    for (i32 j = y0; j <= y1; j++) {
        i32 y = border_index(j, height);
        for (i32 i = x0; i <= x1; i++) {
            i32 x = border_index(i, width);
            if (x >= 0 && y >= 0) sum += (f32)image[(u64)y * pitch + x];
        }
    }
    return sum;
}

// Dxx + Dyy, computed only at maxima, for its sign.
FUNCTION f32 laplacian(const GLOBAL PIXEL *image, i32 pitch, i32 width, i32 height, i32 x, i32 y) {
#define BOX(i0, i1, j0, j1) box(image, pitch, width, height, x + (i0), x + (i1), y + (j0), y + (j1))
    f32 dxx = BOX(-4, 4, -2, 2) - 3.0f * BOX(-1, 1, -2, 2);
    f32 dyy = BOX(-2, 2, -4, 4) - 3.0f * BOX(-2, 2, -1, 1);
#undef BOX
    return dxx + dyy;
}

KERNEL(blobs) {
    i32 width = args.plane.row, height = args.plane.height, det_pitch = args.det_plane.pitch;
    i32 x = 1 + GROUP_X % args.across * GROUP_WIDTH + LANE_X, y = 1 + GROUP_X / args.across * GROUP_HEIGHT + LANE_Y;
    if (x >= width - 1 || y >= height - 1) return;
    const GLOBAL f32 *at = det + (u64)y * det_pitch + x;
    f32 v = ABS(at[0]);
    if (!(v >= args.threshold)) return;
    UNROLL
    for (i32 j = -1; j <= 1; j++) {
        UNROLL
        for (i32 i = -1; i <= 1; i++) {
            if ((i != 0 || j != 0) && !(ABS(at[j * det_pitch + i]) < v)) return;
        }
    }
    u32 place = ATOMIC_ADD(count, 1u);
    if (place >= args.capacity) return;
    f32 sum = laplacian(image, args.plane.pitch, width, height, x, y);
    found[place].x = x;
    found[place].y = y;
    found[place].response = at[0];
    found[place].laplacian = sum > 0.0f ? 1 : (sum < 0.0f ? -1 : 0);
}
