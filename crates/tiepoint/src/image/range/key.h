// An integer that sorts as the float does; -0 is 0.
FUNCTION u32 key_of(f32 v) {
    u32 bits = BITS_OF(v + 0.0f);
    return (bits >> 31) == 1u ? ~bits : bits | 0x80000000u;
}
