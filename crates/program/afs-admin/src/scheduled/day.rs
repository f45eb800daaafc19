//! Days of the Gregorian calendar in UTC, as names of snapshots.

use std::fmt;

use afs_wire::ids::UnixSeconds;

/// A day, counted from 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Day(u32);

const SECONDS: u32 = 86_400;
const DAYS_OF_400_YEARS: u32 = 146_097;
/// Days from 0000-03-01, where the calendar's arithmetic starts, to 1970-01-01.
const BEFORE_1970: u32 = 719_468;

impl Day {
    /// The day of an instant.
    pub(super) fn of(instant: UnixSeconds) -> Self {
        Self(instant.0 / SECONDS)
    }

    /// Its week, from Monday on; 1970-01-01 was a Thursday.
    pub(super) fn week(self) -> u32 {
        (self.0 + 3) / 7
    }

    /// The day of a name `YYYY-MM-DD`, if it is one, from 1970 to 2105.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let number = |at: std::ops::Range<usize>| {
            let digits = name.get(at)?;
            digits.bytes().all(|c| c.is_ascii_digit()).then(|| digits.parse::<u32>().ok())?
        };
        let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
        if !(1970..=2105).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        // Years begin in March here, so that the leap day is the last day of a year.
        let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let of_era = years % 400;
        let in_era = of_era * 365 + of_era / 4 - of_era / 100 + (153 * months + 2) / 5 + day - 1;
        let parsed = Self(years / 400 * DAYS_OF_400_YEARS + in_era - BEFORE_1970);
        // A nonexistent day, or any other text in the name, gives a different name.
        (parsed.to_string() == name).then_some(parsed)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days = self.0 + BEFORE_1970;
        let (era, in_era) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
        let of_era = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
        let of_year = in_era - (365 * of_era + of_era / 4 - of_era / 100);
        let months = (5 * of_year + 2) / 153;
        let day = of_year - (153 * months + 2) / 5 + 1;
        let month = if months < 10 { months + 3 } else { months - 9 };
        let year = era * 400 + of_era + u32::from(month <= 2);
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_the_names_of_the_calendar_and_back() {
        let name = |seconds: u32| Day::of(UnixSeconds(seconds)).to_string();
        assert_eq!(name(0), "1970-01-01");
        assert_eq!(name(951_782_400), "2000-02-29");
        assert_eq!(name(1_795_305_599), "2026-11-21");
        assert_eq!(name(1_795_305_600), "2026-11-22");
        for day in (0..49_000).map(Day) {
            assert_eq!(Day::parse(&day.to_string()), Some(day));
        }
    }

    #[test]
    fn other_names_are_no_days() {
        for name in
            ["", "before", "2026-11-2", "2026-11-211", "2026-02-29", "2026-13-01", "2026-11-31", "2026_11_21"]
        {
            assert_eq!(Day::parse(name), None, "{name}");
        }
    }

    #[test]
    fn weeks_begin_on_monday() {
        let week = |name: &str| Day::parse(name).unwrap().week();
        assert_eq!(week("2026-11-16"), week("2026-11-22"));
        assert_eq!(week("2026-11-22") + 1, week("2026-11-23"));
    }
}
