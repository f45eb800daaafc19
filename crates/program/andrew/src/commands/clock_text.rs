//! How far a server's clock differs from this machine's, in words.

use super::duration_text;

/// A difference that is not told: clocks are compared by whole seconds.
const EXACT_SECONDS: u64 = 2;

/// `ahead` are seconds, negative if it is behind. `None`: it is right.
pub(super) fn told(ahead: i64) -> Option<String> {
    let by = ahead.unsigned_abs();
    let side = if ahead < 0 { "behind" } else { "ahead of" };
    (by > EXACT_SECONDS).then(|| format!("{} {side} this machine's", duration_text::in_words(by)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_clock_is_told_and_a_right_one_is_not() {
        assert_eq!([0, 2, -2].map(told), [None, None, None]);
        let said = [3, -108_000].map(|ahead| told(ahead).unwrap());
        assert_eq!(said, ["3 s ahead of this machine's", "30 h behind this machine's"]);
    }
}
