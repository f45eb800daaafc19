//! Durations as text.

/// Formats a number of seconds, rounded to a unit.
pub(super) fn in_words(seconds: u64) -> String {
    let [minutes, hours, days] = [60, 3600, 86_400].map(|unit| seconds.saturating_add(unit / 2) / unit);
    match (days, hours, minutes, seconds) {
        (.., 0..120) => format!("{seconds} s"),
        (.., 0..120, _) => format!("{minutes} min"),
        (_, 0..72, ..) => format!("{hours} h"),
        _ => format!("{days} days"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_of_a_unit_are_enough_to_use_it() {
        let said = [0, 119, 120, 7100, 7200, 255_600, 259_200].map(in_words);
        assert_eq!(said, ["0 s", "119 s", "2 min", "118 min", "2 h", "71 h", "3 days"]);
    }

    #[test]
    fn durations_seconds_short_of_a_unit_are_rounded_up() {
        let said = [7199, 25 * 3600 - 5, 259_199, 7 * 86_400 - 5].map(in_words);
        assert_eq!(said, ["2 h", "25 h", "3 days", "7 days"]);
    }
}
