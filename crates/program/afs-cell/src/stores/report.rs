//! Report on a store that no server has open: what is damaged, and what is lost with it, in the words of the layer above.

use super::find::Kind;
use super::{OfflineStore, StoresError};
use afs_kv::{FileMedium, LostRows, Report};
use afs_volume::DamageWords;
use serde::Serialize;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What a check found.
#[derive(Clone, Debug, Serialize)]
pub struct StoreReport {
    /// The store.
    pub path: PathBuf,
    /// Whether nothing is damaged.
    pub whole: bool,
    /// What is damaged.
    pub damage: Vec<StoreDamage>,
    /// Damage that is not listed.
    pub unlisted: u64,
    /// Last batch before which none is missing.
    pub through: u64,
    /// Batches that are missing.
    pub lost_batches: Vec<LostBatchesOf>,
    /// Whole batches behind the first that is missing.
    pub later: u64,
    /// Rows that can be read in the index.
    pub rows: u64,
    /// Parts of the index that cannot be read: what may have been in them.
    pub lost_rows: Vec<String>,
}

/// A damaged file.
#[derive(Clone, Debug, Serialize)]
pub struct StoreDamage {
    /// Its name in the store.
    pub file: String,
    /// The damage, in words that continue the name.
    pub what: String,
}

/// Batches that are missing.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LostBatchesOf {
    /// The first.
    pub first: u64,
    /// The last; `None` where that is not known.
    pub last: Option<u64>,
}

impl OfflineStore {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads all of it, and writes nothing.
    ///
    /// # Errors
    /// A server has it open, its directory cannot be read, or a later program wrote it.
    pub fn check(&self) -> Result<StoreReport, StoresError> {
        let medium = self.medium()?;
        let (report, words) = self.examine(&medium)?;
        Ok(self.in_words(&report, &words))
    }

    /// Its files, held so that no server opens them.
    pub(super) fn medium(&self) -> Result<FileMedium, StoresError> {
        FileMedium::read_only(&self.path).map_err(|error| match error.kind() {
            ErrorKind::ResourceBusy => StoresError::InUse(self.path.clone()),
            _ => self.cannot_read(error),
        })
    }

    pub(super) fn examine(&self, medium: &FileMedium) -> Result<(Report, DamageWords), StoresError> {
        let mut words = DamageWords::default();
        let report = afs_kv::check(medium, &mut words);
        Ok((report.map_err(|error| self.cannot_read(error))?, words))
    }

    fn cannot_read(&self, why: impl ToString) -> StoresError {
        StoresError::Read { path: self.path.clone(), why: why.to_string() }
    }

    pub(super) fn in_words(&self, report: &Report, words: &DamageWords) -> StoreReport {
        let damage = report.damage.iter();
        let lost = report.lost.iter();
        StoreReport {
            path: self.path.clone(),
            whole: report.is_whole(),
            damage: damage.map(|d| StoreDamage { file: d.file.clone(), what: d.what.clone() }).collect(),
            unlisted: report.unlisted,
            through: report.through,
            lost_batches: lost.map(|l| LostBatchesOf { first: l.first, last: l.last }).collect(),
            later: report.later,
            rows: report.rows,
            lost_rows: report.lost_rows.iter().map(|rows| self.lost_in_words(rows, words)).collect(),
        }
    }

    fn lost_in_words(&self, rows: &LostRows, words: &DamageWords) -> String {
        let word = |(table, key): &(String, bytes::Bytes)| match self.kind {
            Kind::Partition => words.of(table, key),
            Kind::Databases => format!("rows of {table}"),
        };
        let after = rows.after.as_ref().map_or_else(|| "the beginning".to_owned(), word);
        let through = rows.through.as_ref().map_or_else(|| "the end".to_owned(), word);
        if after == through { after } else { format!("from {after} to {through}") }
    }
}
