//! Retention of scheduled snapshots.

use std::collections::BTreeSet;

use afs_wire::operations::SnapshotSchedule;

use super::day::Day;

/// The days whose snapshots are deleted: all but the newest `daily` days and the newest snapshot of each of
/// `weekly` weeks. Days and weeks without a snapshot do not count, so a volume that no longer changes keeps
/// its last ones.
pub(super) fn expired(days: &BTreeSet<Day>, schedule: &SnapshotSchedule) -> Vec<Day> {
    let newest_first = || days.iter().rev().copied();
    let mut kept: BTreeSet<Day> = newest_first().take(schedule.daily as usize).collect();
    let (mut weeks, mut last) = (0, None);
    for day in newest_first() {
        if weeks == schedule.weekly {
            break;
        }
        if last != Some(day.week()) {
            (weeks, last) = (weeks + 1, Some(day.week()));
            kept.insert(day);
        }
    }
    days.difference(&kept).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept_of(days: &BTreeSet<Day>, daily: u32, weekly: u32) -> Vec<String> {
        let gone = expired(days, &SnapshotSchedule { daily, weekly });
        days.iter().filter(|day| !gone.contains(day)).map(ToString::to_string).collect()
    }

    #[test]
    fn seven_days_and_four_weeks_are_kept_whenever_it_is_looked() {
        let name = |day: u32| format!("2026-10-{day:02}");
        let mut days = BTreeSet::new();
        for day in 1..=31 {
            days.insert(Day::parse(&name(day)).unwrap());
            for gone in expired(&days, &SnapshotSchedule { daily: 7, weekly: 4 }) {
                days.remove(&gone);
            }
        }
        let names: Vec<String> = days.iter().map(ToString::to_string).collect();
        // The 11th, 18th and 25th were Sundays.
        let wanted = [11, 18, 25, 26, 27, 28, 29, 30, 31].map(name);
        assert_eq!(names, wanted);
    }

    #[test]
    fn old_snapshots_are_kept_while_they_are_among_the_newest() {
        let days = ["2020-01-01", "2026-11-21"].map(|name| Day::parse(name).unwrap()).into();
        assert_eq!(kept_of(&days, 2, 0), ["2020-01-01", "2026-11-21"]);
        assert_eq!(kept_of(&days, 1, 0), ["2026-11-21"]);
        assert_eq!(kept_of(&days, 0, 2), ["2020-01-01", "2026-11-21"]);
        assert!(kept_of(&days, 0, 0).is_empty());
    }
}
