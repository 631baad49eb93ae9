// Copies the features at the given indices. A lane copies one number of a descriptor, and the first lanes also a word
// of a keypoint each.
KERNEL(gather) {
    u64 at = (u64)GROUP_X * LANES + (u64)LANE_X;
    if (at < (u64)args.n * args.dimension) {
        u64 i = at / args.dimension;
        values[at] = all_values[(u64)indices[i] * args.dimension + at % args.dimension];
    }
    if (at < (u64)args.n * KEYPOINT_WORDS) {
        u64 i = at / KEYPOINT_WORDS;
        keypoints[at] = all_keypoints[(u64)indices[i] * KEYPOINT_WORDS + at % KEYPOINT_WORDS];
    }
}
