//! Dates in the formats of OpenAFS's tools, in the user's time zone: `Sat Nov 21 04:01:18 2026`, `11/21/2026 04:01`.

use afs_wire::ids::UnixSeconds;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;

/// Formats a time as ctime(3) does, without a newline.
pub(in crate::commands) fn show(at: UnixSeconds) -> String {
    show_in(at, TimeZone::system())
}

fn show_in(at: UnixSeconds, zone: TimeZone) -> String {
    let moment = Timestamp::from_second(at.0.into()).unwrap_or(Timestamp::UNIX_EPOCH);
    moment.to_zoned(zone).strftime("%a %b %e %H:%M:%S %Y").to_string()
}

/// Parses a time: `mm/dd/yyyy`, optionally with ` hh:MM` or ` hh:MM:SS`; `yyyy-mm-dd` likewise; or seconds since 1970.
///
/// # Errors
/// The text has another format; the message describes the valid ones.
pub(super) fn parse(text: &str) -> Result<UnixSeconds, String> {
    parse_in(text, TimeZone::system())
}

fn parse_in(text: &str, zone: TimeZone) -> Result<UnixSeconds, String> {
    let seconds = match text.parse::<u32>() {
        Ok(seconds) => Some(seconds),
        Err(_) => civil(text).and_then(|date| {
            let moment = zone.to_ambiguous_zoned(date).compatible().ok()?;
            u32::try_from(moment.timestamp().as_second()).ok()
        }),
    };
    seconds.map(UnixSeconds).ok_or_else(|| "give it as \"mm/dd/yyyy hh:MM\" or in seconds since 1970".into())
}

fn civil(text: &str) -> Option<DateTime> {
    let forms = ["%m/%d/%Y", "%Y-%m-%d"];
    let times = ["", " %H:%M", " %H:%M:%S"];
    let all = forms.iter().flat_map(|form| times.iter().map(move |time| format!("{form}{time}")));
    let mut read = all.filter_map(|form| strtime::parse(&form, text.trim()).ok());
    read.find_map(|parts| parts.to_datetime().or_else(|_| parts.to_date().map(DateTime::from)).ok())
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
            assert_eq!(show_in(UnixSeconds(seconds), TimeZone::UTC), text);
        }
    }

    #[test]
    fn dates_are_read_in_ones_own_time() {
        let east = || TimeZone::fixed(jiff::tz::offset(2));
        for (text, seconds) in [
            ("0", 0),
            ("1795233678", 1_795_233_678),
            ("11/21/2026", 1_795_219_200),
            ("11/21/2026 04:01", 1_795_233_660),
            ("11/21/2026 04:01:18", 1_795_233_678),
            ("1/2/1970 0:00", 86_400),
            ("2026-11-21 04:01", 1_795_233_660),
        ] {
            assert_eq!(parse_in(text, TimeZone::UTC), Ok(UnixSeconds(seconds)), "{text}");
        }
        assert_eq!(parse_in("11/21/2026 06:01:18", east()), Ok(UnixSeconds(1_795_233_678)));
        assert_eq!(show_in(UnixSeconds(1_795_233_678), east()), "Sat Nov 21 06:01:18 2026");
        for bad in ["", "now", "-1", "13/21/2026", "11/31/2026", "11/21/2026 25:00", "11/21/1969", "1/1/2300"]
        {
            assert!(parse_in(bad, TimeZone::UTC).unwrap_err().contains("mm/dd/yyyy"), "{bad}");
        }
    }
}
