// The kernels of the scale space; the functions blur_0, blur_1, ... are instances of blur.h.

#if BASE
// Level 0 of the first octave of one image.
KERNEL(blur_base) {
    LOCAL float4 tile[TILE / 4];
    Input input;
    input.pixels = pixels;
    input.pitch = args.pixel_pitch;
    input.width = args.input_width;
    input.height = args.input_height;
    i32 y0 = GROUP_Y * args.rows;
    blur_0((LOCAL_POINTER f32 *)tile, input, levels + args.offset, 0, args.width, args.height, GROUP_X * WIDTH, y0,
           MIN_I(args.height, y0 + args.rows));
}
#else
FUNCTION i32 strips_of(i32 width) { return (width + WIDTH - 1) / WIDTH; }

FUNCTION i32 groups_of(BlurTask task) {
    return strips_of(task.width) * ((task.height + task.rows - 1) / task.rows);
}

// What one launch does: a level of each of up to three octaves that do not depend on each other. The level below, the
// level itself and level 0 of the next octave are three parts of the memory that do not overlap.
KERNEL(blur_levels) {
    LOCAL float4 tile4[TILE / 4];
    LOCAL_POINTER f32 *tile = (LOCAL_POINTER f32 *)tile4;
    i32 group = GROUP_X;
    BlurTask task = args.a;
    if (group >= groups_of(task)) {
        group -= groups_of(task);
        task = args.b;
        if (group >= groups_of(task)) {
            group -= groups_of(task);
            task = args.c;
        }
    }
    i32 strips = strips_of(task.width);
    i32 x0 = group % strips * WIDTH, y0 = group / strips * task.rows;
    i32 y1 = MIN_I(task.height, y0 + task.rows);
    u64 level_len = (u64)pitch_of(task.width) * task.height;
    GLOBAL f32 *to = levels + ((u64)GROUP_Z * args.image_stride + task.offset + (u64)task.level * level_len);
    const GLOBAL f32 *from = to - level_len;
    GLOBAL f32 *half_size = task.decimates ? to + 3 * level_len : 0;
    switch (task.level) { BLUR_CASES }
}
#endif
