//! Durations in words.

/// A number of seconds as a person says it.
pub(super) fn in_words(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600, seconds / 60);
    match (days, hours, minutes) {
        (0, 0, 0..=1) => format!("{seconds} s"),
        (0, 0..=1, _) => format!("{minutes} min"),
        (0..=2, ..) => format!("{hours} h"),
        _ => format!("{days} days"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_of_a_unit_are_enough_to_use_it() {
        let said = [0, 119, 120, 7199, 7200, 259_199, 259_200].map(in_words);
        assert_eq!(said, ["0 s", "119 s", "2 min", "119 min", "2 h", "71 h", "3 days"]);
    }
}
