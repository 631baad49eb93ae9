// An integer that sorts as the float does; -0 is 0.
FUNCTION u32 key_of(f32 v) {
    u32 bits = BITS_OF(v + 0.0f);
    return (bits >> 31) == 1u ? ~bits : bits | 0x80000000u;
}

// The float of such an integer.
FUNCTION f32 value_of(u32 key) { return FLOAT_OF((key >> 31) == 1u ? key & 0x7fffffffu : ~key); }
