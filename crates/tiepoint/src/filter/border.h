// The index inside 0..n that stands for `i`, or -1 where the border rule gives none; as `Border::index`.
FUNCTION i32 border_index(i32 i, i32 n) {
#if BORDER_RULE == CLAMP
    return i < 0 ? 0 : (i < n ? i : n - 1);
#elif BORDER_RULE == REFLECT
    // Several reflections, because a window may be larger than a small image.
    while (n > 1 && (i < 0 || i >= n)) i = i < 0 ? -i : 2 * (n - 1) - i;
    return n > 1 ? i : 0;
#else
    return i >= 0 && i < n ? i : -1;
#endif
}
