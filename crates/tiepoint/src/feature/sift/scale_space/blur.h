// One step of the scale space for a strip of WIDTH columns and rows y0 to y1 - 1; instantiated for each level with
//   BLUR            the function's name
//   RADIUS, TAP(k)  the Gaussian: centre and one side
// The input is read by input.h.
//
// A lane goes down one column: the rows under its window stay in registers. It writes ROWS vertical sums at a time to
// local memory, from which each lane takes 8 neighbours of a row for the horizontal sums. A pixel is therefore read
// once (and the HALO on either side of a strip), and a value from local memory is used in a dozen multiplications. The
// two halves of the tile are used in turn, so that one barrier for each suffices; the next rows are read meanwhile.
// Rows are counted from y0, a multiple of ROWS; columns beyond the image are computed from its border like any other,
// and stored if the row's padding has room for them.

#if RADIUS <= HALO

FUNCTION void BLUR(LOCAL_POINTER f32 *tile, SOURCE, GLOBAL f32 *RESTRICT to, GLOBAL f32 *RESTRICT half_size, i32 width,
                   i32 height, i32 x0, i32 y0, i32 y1) {
    const i32 first = (HALO - RADIUS) / 4 * 4, skip = (HALO - RADIUS) % 4;
    i32 lane = LANE_X, pitch = pitch_of(width), half_pitch = pitch_of(width / 2);
    i32 column = border_index(x0 - HALO + lane, width);
    SOURCE_COLUMN(column);
    // The place of this lane's eight horizontal sums: four blocks of a row, then the next row, so that the sixteen-byte
    // reads of eight lanes touch every bank once.
    i32 block = (lane / 32 * 4 + lane % 4) * 8, row = lane / 4 % ROWS;
    i32 stores = block < WIDTH && x0 + block < pitch;
    f32 window[2 * RADIUS + ROWS];
    UNROLL
    for (i32 i = 0; i < 2 * RADIUS + ROWS; i++) window[i] = SOURCE_AT(border_index(y0 - RADIUS + i, height), column);
    i32 turn = 0;
    for (i32 y = y0; y < y1; y += ROWS) {
        LOCAL_POINTER f32 *rows = tile + turn * (ROWS * TILE_PITCH);
        turn = 1 - turn;
        UNROLL
        for (i32 i = 0; i < ROWS; i++) {
            f32 sum = TAP(0) * window[RADIUS + i];
            UNROLL
            for (i32 k = 1; k <= RADIUS; k++) sum = FMA(TAP(k), window[RADIUS + i - k] + window[RADIUS + i + k], sum);
            rows[i * TILE_PITCH + lane] = sum;
        }
        UNROLL
        for (i32 i = 0; i < 2 * RADIUS; i++) window[i] = window[ROWS + i];
        i32 next = y + ROWS + RADIUS;
        if (y + ROWS < y1) {
            if (SOURCE_HOLDS(next)) {
                SOURCE_ROWS(window + 2 * RADIUS, next, column);
            } else {
                UNROLL
                for (i32 i = 0; i < ROWS; i++) {
                    window[2 * RADIUS + i] = SOURCE_AT(border_index(next + i, height), column);
                }
            }
        }
        BARRIER();
        if (stores && y + row < y1) {
            f32 v[8 + 2 * HALO];
            const LOCAL_POINTER float4 *quads = (const LOCAL_POINTER float4 *)(rows + row * TILE_PITCH + block + first);
            UNROLL
            for (i32 q = 0; q < (skip + 2 * RADIUS + 8 + 3) / 4; q++) {
                float4 quad = quads[q];
                v[4 * q] = quad.x;
                v[4 * q + 1] = quad.y;
                v[4 * q + 2] = quad.z;
                v[4 * q + 3] = quad.w;
            }
            f32 sums[8];
            UNROLL
            for (i32 i = 0; i < 8; i++) sums[i] = TAP(0) * v[skip + RADIUS + i];
            UNROLL
            for (i32 k = 1; k <= RADIUS; k++) {
                UNROLL
                for (i32 i = 0; i < 8; i++) {
                    sums[i] = FMA(TAP(k), v[skip + RADIUS + i - k] + v[skip + RADIUS + i + k], sums[i]);
                }
            }
            GLOBAL float4 *out = (GLOBAL float4 *)(to + (u64)(y + row) * pitch + x0 + block);
            float4 quad;
            quad.x = sums[0];
            quad.y = sums[1];
            quad.z = sums[2];
            quad.w = sums[3];
            out[0] = quad;
            quad.x = sums[4];
            quad.y = sums[5];
            quad.z = sums[6];
            quad.w = sums[7];
            out[1] = quad;
            i32 x = (x0 + block) / 2;
            if (half_size != 0 && row % 2 == 0 && (y + row) / 2 < height / 2 && x < half_pitch) {
                quad.x = sums[0];
                quad.y = sums[2];
                quad.z = sums[4];
                quad.w = sums[6];
                *(GLOBAL float4 *)(half_size + (u64)((y + row) / 2) * half_pitch + x) = quad;
            }
        }
    }
}

#else

// A Gaussian so wide that its window does not fit into registers: both sums one by one.
FUNCTION void BLUR(LOCAL_POINTER f32 *tile, SOURCE, GLOBAL f32 *RESTRICT to, GLOBAL f32 *RESTRICT half_size, i32 width,
                   i32 height, i32 x0, i32 y0, i32 y1) {
    const i32 columns = WIDTH + 2 * RADIUS;
    i32 pitch = pitch_of(width), half_pitch = pitch_of(width / 2);
    for (i32 y = y0; y < y1; y += ROWS) {
        for (i32 i = LANE_X; i < columns * ROWS; i += GROUP) {
            i32 row = y + i / columns, column = border_index(x0 - RADIUS + i % columns, width);
            SOURCE_COLUMN(column);
            f32 sum = TAP(0) * SOURCE_AT(border_index(row, height), column);
            for (i32 k = 1; k <= RADIUS; k++) {
                f32 above = SOURCE_AT(border_index(row - k, height), column);
                sum = FMA(TAP(k), above + SOURCE_AT(border_index(row + k, height), column), sum);
            }
            tile[i] = sum;
        }
        BARRIER();
        for (i32 i = LANE_X; i < WIDTH * ROWS; i += GROUP) {
            i32 row = y + i / WIDTH, x = x0 + i % WIDTH;
            const LOCAL_POINTER f32 *centre = tile + i / WIDTH * columns + RADIUS + i % WIDTH;
            f32 sum = TAP(0) * centre[0];
            for (i32 k = 1; k <= RADIUS; k++) sum = FMA(TAP(k), centre[-k] + centre[k], sum);
            if (x < width && row < y1) {
                to[(u64)row * pitch + x] = sum;
                i32 kept = half_size != 0 && (row | x) % 2 == 0 && row / 2 < height / 2 && x / 2 < width / 2;
                if (kept) half_size[(u64)(row / 2) * half_pitch + x / 2] = sum;
            }
        }
        BARRIER();
    }
}

#endif
#undef BLUR
#undef RADIUS
#undef TAP
