//! Dates as the field's tools print them: `Sat Nov 21 04:01:18 2026`.

use afs_wire::ids::UnixSeconds;

/// A moment in UTC in the form of ctime(3), without a newline.
pub(in crate::commands) fn show(at: UnixSeconds) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, second) = (at.0 / 86_400, at.0 % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let weekday = DAYS[(days % 7) as usize];
    format!("{weekday} {} {day:2} {hour:02}:{minute:02}:{second:02} {year}", MONTHS[month as usize])
}

/// Days since 1970-01-01 as year, month from 0, and day of the month (Gregorian calendar).
fn civil(days: u32) -> (u32, u32, u32) {
    // Count from 0000-03-01, so that a leap day is the last day of its year.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12;
    (year_of_era + era * 400 + u32::from(month < 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_calendar() {
        for (seconds, text) in [
            (0, "Thu Jan  1 00:00:00 1970"),
            (951_782_400, "Tue Feb 29 00:00:00 2000"),
            (1_795_233_678, "Sat Nov 21 04:01:18 2026"),
            (u32::MAX, "Sun Feb  7 06:28:15 2106"),
        ] {
            assert_eq!(show(UnixSeconds(seconds)), text);
        }
    }
}
