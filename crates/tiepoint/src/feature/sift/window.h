// The gradients of the pixels around a keypoint, as in window.rs; shared by orient.cl and describe.cl.
//
// A group of LANES works on one keypoint. The pixels of its window are counted row after row without gaps, and lane l
// takes pixels l, l + LANES, ...: no lane idles however narrow or slanted the window is, and neighbouring lanes read
// neighbouring pixels.
//
// Neighbouring pixels fall into the same bins, where atomics would wait for each other. A histogram therefore has
// several columns, `[bin][column]`, and neighbouring lanes add to different ones. At the end the columns are added up;
// sums are of integers, so that their order does not matter.
//
// 32 bits are enough. The most that options allow is a scale of 22.6 (sigma 4, one level, VLFeat's offset of 1.5
// layers) in a level that was blurred by 6.9: differences of neighbours are below 0.12 in x and y, and the weights of
// all pixels add up to 7240 for directions. In units of 1 / UNIT that is 2^31.2, if all gradients were the greatest
// and in one bin; a bin of a descriptor gets less. Smaller scales have steeper gradients, but far fewer pixels.

// A keypoint's level, and its position and scale there.
typedef struct {
    const GLOBAL f32 *pixels;
    i32 width, height, pitch;
    f32 x, y, scale;
} Point;

// The octaves' pixels differ by powers of two, so this inverts refinement's multiplication exactly. The subtraction
// of a band's first row is exact too, because the difference has no smaller bits than the number had.
FUNCTION Point point_of(const GLOBAL Keypoint *keypoint, const GLOBAL f32 *image, const GLOBAL Octave *octaves) {
    u32 octave_layer = keypoint->octave_layer;
    i32 number = (i32)(octave_layer >> 8) - 128;
    const GLOBAL Octave *octave = octaves + (number - octaves->number);
    f32 per_pixel = FLOAT_OF((u32)(127 - number) << 23);
    Point p;
    p.pixels = image + octave->offset + (u64)(octave_layer & 255u) * (u32)octave->height * (u32)octave->pitch;
    p.width = octave->width;
    p.height = octave->height;
    p.pitch = octave->pitch;
    p.x = keypoint->x * per_pixel;
    p.y = keypoint->y * per_pixel - (f32)octave->first_row;
    p.scale = keypoint->scale * per_pixel;
    return p;
}

// The nearest integer, ties to even, of |v| < 2^22.
FUNCTION i32 to_integer(f32 v) { return (i32)(BITS_OF(v + ROUNDER) - BITS_OF(ROUNDER)); }

typedef struct {
    i32 low, high;
} Span;

// Pixels at distance <= radius of the centre, short of the one-pixel frame in which there is no gradient.
FUNCTION Span around(f32 centre, i32 radius, i32 n) {
    i32 middle = (i32)ROUND_EVEN(centre);
    Span span;
    span.low = MAX_I(middle - radius, 1);
    span.high = MAX_I(MIN_I(middle + radius + 1, n - 1), span.low);
    return span;
}

// A pixel and its four neighbours. They are subtracted only when they are needed, so that the next pixel is read while
// this one is processed.
typedef struct {
    i32 x, y;
    f32 left, right, above, below;
} Sample;

FUNCTION Sample sample_at(const Point *point, i32 x, i32 y) {
    const GLOBAL f32 *at = point->pixels + (i64)y * point->pitch + x;
    Sample s;
    s.x = x;
    s.y = y;
    s.left = at[-1];
    s.right = at[1];
    s.above = at[-point->pitch];
    s.below = at[point->pitch];
    return s;
}

// Adds up the columns of one bin, 32 or fewer. Lanes begin at different columns, and so in different banks.
FUNCTION u32 sum_of_bin(const LOCAL_POINTER u32 *sums, i32 columns, i32 bin, i32 lane) {
    u32 total = 0;
    i32 first = lane / (LANES / columns);
    for (i32 i = 0; i < columns; i++) total += sums[bin * columns + ((i + first) & (columns - 1))];
    return total;
}
