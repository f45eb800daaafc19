//! Byte counts with units, as users type and read them.

/// Parses `100`, `64k`, `500M`, `10G`, `1T` (powers of 1024, either case, an optional `B` or `iB` after the letter)
/// into bytes.
///
/// # Errors
/// The text is not a size; the message shows a valid one.
pub fn parse(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err(wrong(text)),
    };
    let number: u64 = number.parse().map_err(|_| wrong(text))?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("'{text}' is more than 16 EiB"))
}

/// Formats a number of bytes: `0 bytes`, `1023 bytes`, `1.0 KiB`, `3.1 GiB`.
pub fn show(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let Some(power) = bytes.checked_ilog2().map(|log| log / 10).filter(|power| *power > 0) else {
        return format!("{bytes} bytes");
    };
    let tenths = (u128::from(bytes) * 10) >> (10 * power);
    format!("{}.{} {}", tenths / 10, tenths % 10, units[power as usize - 1])
}

fn wrong(text: &str) -> String {
    format!("'{text}' is not a size; a size is a number with k, M, G or T, like 500M")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_1024() {
        assert_eq!(parse("100"), Ok(100));
        assert_eq!(parse("64k"), Ok(65536));
        assert_eq!(parse("2GiB"), Ok(2 << 30));
        assert_eq!(parse("1TB"), Ok(1 << 40));
    }

    #[test]
    fn people_see_two_digits_and_a_unit() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1024, "1.0 KiB"),
            (6 * 1024, "6.0 KiB"),
            (3_330_000_000, "3.1 GiB"),
            (u64::MAX, "15.9 EiB"),
        ] {
            assert_eq!(show(bytes), text);
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "k", "1x", "-1", "1.5G", "99999999999999999999", "20000000T"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
