//! What is wrong with a store, and what is lost with it.

use std::fmt;

use bytes::Bytes;

use crate::error::KvError;

/// A damaged file of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Its name in the store's directory.
    pub file: String,
    /// The damage, in words that continue the name.
    pub what: String,
}

/// Batches that were acknowledged, or may have been, and are not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostBatches {
    /// The first.
    pub first: u64,
    /// The last; `None` where that is not known.
    pub last: Option<u64>,
}

/// Rows that cannot be read: any number of them, also none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRows {
    /// Table and key before the first of them; `None`: from the beginning.
    pub after: Option<(String, Bytes)>,
    /// Table and key of the last that may be lost; `None`: up to the end.
    pub through: Option<(String, Bytes)>,
    /// The tables of which rows may be lost. Empty where it is not known which tables there are.
    pub tables: Vec<String>,
}

/// What a check found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What is damaged. Empty: the store is whole.
    pub damage: Vec<Damage>,
    /// Damage beyond [`DAMAGE_MAX`], which is not listed.
    pub unlisted: u64,
    /// Last batch that the index has.
    pub applied: u64,
    /// Last batch before which none is missing.
    pub through: u64,
    /// Last batch that is known of.
    pub last: u64,
    /// Batches that are missing.
    pub lost: Vec<LostBatches>,
    /// Whole batches behind the first that is missing.
    pub later: u64,
    /// Rows that can be read in the index.
    pub rows: u64,
    /// Parts of the index that cannot.
    pub lost_rows: Vec<LostRows>,
}

/// Most entries that are listed of damage, and of lost rows.
pub const DAMAGE_MAX: usize = 1000;

impl Report {
    /// Lists a damage, or counts it.
    pub(crate) fn note_damage(&mut self, damage: Damage) {
        match self.damage.len() < DAMAGE_MAX {
            true => self.damage.push(damage),
            false => self.unlisted += 1,
        }
    }

    /// Lists lost rows, in the order of the index. Those beyond the bound are included in the last ones, which then go on to the end.
    pub(crate) fn note_lost_rows(&mut self, lost: LostRows) {
        let is_full = self.lost_rows.len() >= DAMAGE_MAX;
        let Some(last) = self.lost_rows.last_mut().filter(|_| is_full) else {
            return self.lost_rows.push(lost);
        };
        last.through = None;
        let more = lost.tables.into_iter().filter(|table| !last.tables.contains(table));
        let more: Vec<String> = more.collect();
        last.tables.extend(more);
    }

    /// Whether a row of a table may be lost with a part of the index. Where the log has all batches from the first on nothing is.
    #[must_use]
    pub fn may_lack_rows_of(&self, table: &str) -> bool {
        let has_all = self.applied == 0 && self.through > 0 && self.lost.is_empty();
        let lost = |rows: &LostRows| rows.tables.is_empty() || rows.tables.iter().any(|lost| lost == table);
        !has_all && self.lost_rows.iter().any(lost)
    }

    /// Whether a salvage would keep nothing at all.
    #[must_use]
    pub fn keeps_nothing(&self, with_later: bool) -> bool {
        self.rows == 0 && self.through == self.applied && !(with_later && self.later > 0)
    }

    /// Whether nothing is damaged.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.damage.is_empty()
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.file, self.what)
    }
}

impl Damage {
    pub(crate) fn of(file: &str, what: impl Into<String>) -> Self {
        Self { file: file.to_owned(), what: what.into() }
    }
}

impl From<&Damage> for KvError {
    fn from(damage: &Damage) -> Self {
        Self::Corrupt(damage.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_bounded_and_loses_no_table() {
        let mut report = Report::default();
        let place = |n: usize| Some(("rows".to_owned(), Bytes::from(n.to_string())));
        for n in 0..2 * DAMAGE_MAX {
            report.note_damage(Damage::of("index", "is damaged"));
            let tables = vec![format!("t{}", n / 700)];
            report.note_lost_rows(LostRows { after: place(n), through: place(n + 1), tables });
        }
        assert_eq!((report.damage.len(), report.unlisted), (DAMAGE_MAX, DAMAGE_MAX as u64));
        assert_eq!(report.lost_rows.len(), DAMAGE_MAX);
        let last = report.lost_rows.last().unwrap();
        assert_eq!((&last.after, &last.through), (&place(DAMAGE_MAX - 1), &None));
        assert!(["t0", "t1", "t2"].iter().all(|table| report.may_lack_rows_of(table)));
        assert!(!report.may_lack_rows_of("t3") && !report.is_whole());
    }
}
