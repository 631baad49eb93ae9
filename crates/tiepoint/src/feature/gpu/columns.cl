// Copies the fields of keypoints to an array each, with one lane for each keypoint.
KERNEL(columns) {
    i32 i = GROUP_X * LANES + LANE_X;
    if (i >= args.n) return;
    Keypoint k = keypoints[i];
    xy[2 * i] = k.x;
    xy[2 * i + 1] = k.y;
    scale[i] = k.scale;
    angle[i] = k.angle;
    response[i] = k.response;
    sign[i] = (i8)k.sign;
    octave[i] = (i8)((i32)(k.octave_layer >> 8 & 255u) - 128);
    layer[i] = (u8)(k.octave_layer & 255u);
}
