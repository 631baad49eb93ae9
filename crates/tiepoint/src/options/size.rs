//! Sizes as users write them: `8G`, `300M`, `20000000`.

/// The texts that [`bytes`] takes, for errors.
pub const BYTES: &str = "bytes above 0 such as 300M, 2GiB or 1000000";
/// The texts that [`count`] takes, for errors.
pub const COUNT: &str = "a number above 0 such as 20M or 20000000";

/// Parses a number of bytes: plain, or with K, M, G or T for powers of 1024, optionally followed by B or iB.
pub fn bytes(text: &str) -> Option<u64> {
    let upper = text.trim().to_ascii_uppercase();
    let bare = upper.strip_suffix("IB").or_else(|| upper.strip_suffix('B')).unwrap_or(&upper);
    scaled(bare, 1024.0)
}

/// Parses a count: plain, or with K, M, G or T for powers of 1000.
pub fn count(text: &str) -> Option<u64> {
    scaled(&text.trim().to_ascii_uppercase(), 1000.0)
}

fn scaled(text: &str, step: f64) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let steps = match &text[digits.len()..] {
        "" => 0,
        unit => 1 + ["K", "M", "G", "T"].iter().position(|known| *known == unit)?,
    };
    let number = digits.trim().parse::<f64>().ok()?;
    let all = (0..steps).fold(number, |all, _| all * step);
    (1.0..1e18).contains(&all).then_some(all as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, expected) in [
            ("1000000", 1_000_000),
            ("300M", 300 << 20),
            ("2g", 2 << 30),
            ("1.5GiB", 3 << 29),
            ("64KB", 65536),
            (" 8 G ", 8 << 30),
            ("1T", 1 << 40),
        ] {
            assert_eq!(bytes(text), Some(expected), "{text}");
        }
        for (text, expected) in
            [("20M", 20_000_000), ("20000000", 20_000_000), ("1.5k", 1500), ("4G", 4_000_000_000)]
        {
            assert_eq!(count(text), Some(expected), "{text}");
        }
        for text in ["", "M", "-1G", "0", "2X", "nan", "inf", "1e99", "2GG", "0.5"] {
            assert_eq!((bytes(text), count(text)), (None, None), "{text}");
        }
        assert_eq!(count("20MB"), None, "a count has no unit B");
    }
}
