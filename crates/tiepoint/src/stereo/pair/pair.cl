// Preparation of a pair: the arithmetic of grey.rs and pictures.rs. PIXEL is the picture's type, GREY that of its grey.

// Indices of the values measured where pictures have data. From GREYS: the greatest 16-bit grey, 65535 less the least
// one, the key of the greatest float and that of minus the least one, each 0 if there is none. From CHANNELS_FOUND: the
// same of the channels. From COLOURED: whether each picture has colour.
#define GREYS 0
#define CHANNELS_FOUND ENDS
// The values on which each view's own scale depends, as for the greys.
#define OWN (COLOURED + 2)

// The grey of a pixel; 0 if it is not finite.
FUNCTION GREY grey_of(const PIXEL *p) {
#if PIXEL_IS_FLOAT
#if CHANNELS < 3
    const f32 v = p[0];
#else
    const f32 v = luma_float(p[0], p[1], p[2]);
#endif
    return IS_FINITE(v) ? v : 0.0f;
#elif CHANNELS < 3
    return p[0];
#else
    return (GREY)luma_level((u32)p[0] << WIDENED, (u32)p[1] << WIDENED, (u32)p[2] << WIDENED);
#endif
}

// Channel c of the values that are compared on the view's own scale.
#if OWN_IS_GREY
#define OWN_OF(p, c) grey_of(p)
#else
#define OWN_OF(p, c) finite_of((p)[OWN_FIRST + (c)])
#endif

#if PIXEL_IS_FLOAT
FUNCTION PIXEL finite_of(PIXEL v) { return IS_FINITE(v) ? v : 0.0f; }

// The index of the greatest key of a value; the greatest key of the opposite value follows.
#define KEYS 2
#define KEY(v) key_of(v)
#define OPPOSITE_KEY(v) key_of(-(v))
#else
FUNCTION PIXEL finite_of(PIXEL v) { return v; }

#define KEYS 0
#define KEY(v) ((u32)(v))
#define OPPOSITE_KEY(v) (65535u - (u32)(v))
#endif

// Extends the values on which a scale depends by the value v.
FUNCTION void note(u32 most[ENDS], PIXEL v) {
    const u32 key = KEY(v), opposite = OPPOSITE_KEY(v);
    most[KEYS] = key > most[KEYS] ? key : most[KEYS];
    most[KEYS + 1] = opposite > most[KEYS + 1] ? opposite : most[KEYS + 1];
}

// Whether a picture has data at a pixel: the caller's mask is not 0, and all channels are finite.
FUNCTION i32 holds_at(const PIXEL *p, Plane given_plane, const GLOBAL u8 *given, i32 x, i32 y) {
    i32 holds = given_plane.row == 0
        || given[given_plane.step * (u64)GROUP_Z + (u64)y * given_plane.pitch + x] != 0;
#if PIXEL_IS_FLOAT
    UNROLL
    for (i32 c = 0; c < CHANNELS; c++) holds = holds && IS_FINITE(p[c]);
#endif
    return holds;
}

KERNEL(measure) {
    const Plane plane = args.plane, given_plane = args.given_plane;
    const i32 width = plane.row / CHANNELS;
    pixels += plane.step * (u64)GROUP_Z;
    // The values of `found` for this lane's pixels.
    u32 most[COLOURED] = { 0u, 0u, 0u, 0u, 0u, 0u, 0u, 0u }, own[ENDS] = { 0u, 0u, 0u, 0u };
    u32 coloured = 0u;
    for (i32 y = GROUP_X; y < plane.height; y += GROUPS_X) {
        for (i32 x = LANE_X; x < width; x += LANES) {
            PIXEL p[CHANNELS];
            UNROLL
            for (i32 c = 0; c < CHANNELS; c++) p[c] = pixels[(u64)y * plane.pitch + x * CHANNELS + c];
#if CHANNELS > 2
            if (p[0] != p[1] || p[0] != p[2]) coloured = 1u;
#endif
#if MEASURED
            if (!holds_at(p, given_plane, given, x, y)) continue;
            note(most + GREYS, grey_of(p));
#if COMPARES_COLOUR
            UNROLL
            for (i32 c = 0; c < 3; c++) note(most + CHANNELS_FOUND, finite_of(p[c]));
#endif
            UNROLL
            for (i32 c = 0; c < OWN_CHANNELS; c++) note(own, OWN_OF(p, c));
#endif
        }
    }
    found += (u64)GROUP_Z * FACTS;
    // An outdated value here only causes one more atomic operation.
    UNROLL
    for (i32 i = 0; i < COLOURED; i++) {
        if (most[i] > found[i]) ATOMIC_MAX(&found[i], most[i]);
    }
    UNROLL
    for (i32 i = 0; i < ENDS; i++) {
        if (own[i] > found[OWN + ENDS * args.view + i]) ATOMIC_MAX(&found[OWN + ENDS * args.view + i], own[i]);
    }
    if (coloured != 0u && found[COLOURED + args.view] == 0u) ATOMIC_MAX(&found[COLOURED + args.view], 1u);
}

// Half the difference, because the difference of two finite floats may overflow.
#define APART(low, high) (0.5f * (high) - 0.5f * (low))

// A value of a picture in 8 bits, on the scale of its pair.
FUNCTION u8 byte_of(PIXEL v, const GLOBAL u32 *most) {
#if PIXEL_IS_FLOAT
    f32 low = 0.0f, high = 1.0f;
    if (most[KEYS] != 0u) {
        const f32 least = -value_of(most[KEYS + 1]), greatest = value_of(most[KEYS]);
        low = least < 0.0f ? least : 0.0f;
        high = greatest > 1.0f ? greatest : 1.0f;
        if (least < greatest && APART(least, greatest) < 0.25f * APART(low, high)) {
            low = least;
            high = greatest;
        }
    }
    const f32 byte = (v - low) * (127.5f / APART(low, high));
    return (u8)(byte < 0.0f ? 0.0f : (byte > 255.0f ? 255.0f : byte));
#elif PIXEL_BYTES == 2
    u32 least = 65535u - most[KEYS + 1];
    least = least <= most[KEYS] && most[KEYS] - least < most[KEYS] / 4u ? least : 0u;
    const u32 apart = most[KEYS] - least;
    const u32 shift = apart <= 1023u ? 2u : (apart <= 2047u ? 3u : (apart <= 4095u ? 4u : 8u));
    const u32 byte = ((u32)v > least ? (u32)v - least : 0u) >> shift;
    return (u8)(byte < 255u ? byte : 255u);
#else
    return v;
#endif
}

KERNEL(make_ready) {
    const Plane plane = args.plane, bytes_plane = args.bytes_plane;
    const i32 x = PIXEL_X, y = PIXEL_Y;
    if (x >= bytes_plane.row || y >= bytes_plane.height) return;
    found += (u64)GROUP_Z * FACTS;
    PIXEL p[CHANNELS];
    UNROLL
    for (i32 c = 0; c < CHANNELS; c++) {
        p[c] = pixels[plane.step * (u64)GROUP_Z + (u64)y * plane.pitch + x * CHANNELS + c];
    }
    const GREY v = grey_of(p);
#if WIDENED
    const u8 byte = (u8)((u32)v >> WIDENED);
#else
    const u8 byte = byte_of(v, found + GREYS);
#endif
    bytes[bytes_plane.step * (u64)GROUP_Z + (u64)y * bytes_plane.pitch + x] = byte;
#if STORED
    const Plane grey_plane = args.grey_plane;
    grey[grey_plane.step * (u64)GROUP_Z + (u64)y * grey_plane.pitch + x] = v;
#endif
#if COMPARES_COLOUR
    // If either picture is grey, grey stands for all three colours.
    const Plane compared_plane = args.compared_plane;
    const i32 in_colour = found[COLOURED] != 0u && found[COLOURED + 1] != 0u;
    UNROLL
    for (i32 c = 0; c < 3; c++) {
        compared[compared_plane.step * (u64)GROUP_Z + (u64)y * compared_plane.pitch + 3 * x + c] =
            in_colour ? byte_of(finite_of(p[c]), found + CHANNELS_FOUND) : byte;
    }
#endif
#if OWN_CHANNELS
    const Plane compared_plane = args.compared_plane;
    UNROLL
    for (i32 c = 0; c < OWN_CHANNELS; c++) {
        compared[compared_plane.step * (u64)GROUP_Z + (u64)y * compared_plane.pitch + OWN_CHANNELS * x + c] =
            byte_of(OWN_OF(p, c), found + OWN + ENDS * args.view);
    }
#endif
#if MASKED
    const Plane mask_plane = args.mask_plane;
    const i32 holds = holds_at(p, args.given_plane, given, x, y);
    mask[mask_plane.step * (u64)GROUP_Z + (u64)y * mask_plane.pitch + x] = holds ? 255 : 0;
#endif
}
