//! Repair of a store: a new one is made of what is left, and takes the place of the damaged one, which is kept beside it, in one step.

use super::find::Kind;
use super::{OfflineStore, StoreReport, StoresError};
use afs_env::Parts;
use afs_kv::{FileMedium, Later, Report, salvage};
use afs_own as own;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a repair did.
#[derive(Clone, Debug)]
pub struct Repaired {
    /// What was damaged and lost.
    pub report: StoreReport,
    /// Where the damaged store is now.
    pub aside: PathBuf,
}

impl OfflineStore {
    /// Makes a new store of what is left, and sets the damaged one aside in a directory beside it, named by `stamp`. Nothing is deleted. With `all`, the batches behind
    /// the first that is lost are applied too. Needs as much space as the store has.
    ///
    /// # Errors
    /// The store is whole or in use, nothing of it can be kept, the numbers that it gave may be lost, or the disk refuses: then it is as it was.
    pub fn repair(&self, stamp: &str, all: bool) -> Result<Repaired, StoresError> {
        let medium = self.medium()?;
        let (report, words) = self.examine(&medium)?;
        self.admit(&report, all)?;
        let new = self.beside("repaired", stamp);
        let held = self.make(&medium, &new, all).map_err(|why| StoresError::Make {
            path: self.path.clone(),
            new: new.clone(),
            why,
        })?;
        let aside = self.exchange(&new, stamp)?;
        drop(held);
        Ok(Repaired { report: self.in_words(&report, &words), aside })
    }

    fn admit(&self, report: &Report, all: bool) -> Result<(), StoresError> {
        let path = self.path.clone();
        if report.is_whole() {
            return Err(StoresError::Whole(path));
        }
        if report.keeps_nothing(all) {
            return Err(StoresError::NothingLeft { path, later: report.later > 0 && !all });
        }
        let counters =
            self.tables().iter().find(|table| table.ends_with("meta") && report.may_lack_rows_of(table));
        match counters {
            Some(table) => Err(StoresError::Counters { path, table: (*table).to_owned() }),
            None => Ok(()),
        }
    }

    fn tables(&self) -> &'static [&'static str] {
        match self.kind {
            Kind::Partition => afs_volume::TABLES,
            Kind::Databases => afs_db::TABLES,
        }
    }

    /// Makes the repaired store, and holds it. What is there of it after an error is removed.
    fn make(&self, damaged: &FileMedium, new: &Path, all: bool) -> Result<Arc<FileMedium>, String> {
        own::new_directory(new).map_err(|error| error.to_string())?;
        let made = self.salvage(damaged, new, all);
        if made.is_err() {
            let _ = fs::remove_dir_all(new);
        }
        made
    }

    fn salvage(&self, damaged: &FileMedium, new: &Path, all: bool) -> Result<Arc<FileMedium>, String> {
        let medium = Arc::new(FileMedium::open(new).map_err(|error| error.to_string())?);
        let later = if all { Later::Apply } else { Later::LeaveOut };
        salvage(damaged, medium.clone(), self.tables(), later, Parts::inline()).map_err(|e| e.to_string())?;
        let checked = afs_kv::check(medium.as_ref(), &mut ()).map_err(|error| error.to_string())?;
        if let Some(damage) = checked.damage.first() {
            return Err(format!("what was written is not what is there: {damage}"));
        }
        give_as(&self.path, new).map_err(|error| error.to_string())?;
        Ok(medium)
    }

    /// Lets the repaired store and the damaged one change places: at no time is there none, which a server would take for a new one.
    fn exchange(&self, new: &Path, stamp: &str) -> Result<PathBuf, StoresError> {
        let cannot = |error| StoresError::Exchange { path: self.path.clone(), new: new.to_owned(), error };
        renameat_with(CWD, new, CWD, &self.path, RenameFlags::EXCHANGE).map_err(|e| cannot(e.into()))?;
        let aside = self.beside("damaged", stamp);
        fs::rename(new, &aside).map_err(cannot)?;
        sync_above(&self.path).map_err(cannot)?;
        Ok(aside)
    }

    fn beside(&self, what: &str, stamp: &str) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{what}-{stamp}"));
        self.path.with_file_name(name)
    }
}

/// Gives a directory and its files the owner and the rights that those of another have.
fn give_as(old: &Path, new: &Path) -> io::Result<()> {
    let of = fs::metadata(old)?;
    for entry in fs::read_dir(new)? {
        let path = entry?.path();
        chown(&path, Some(of.uid()), Some(of.gid()))?;
        let mode = fs::read_dir(old)?.flatten().find_map(|file| file.metadata().ok()).map(|file| file.mode());
        fs::set_permissions(&path, fs::Permissions::from_mode(mode.unwrap_or(0o600) & 0o777))?;
    }
    chown(new, Some(of.uid()), Some(of.gid()))?;
    fs::set_permissions(new, fs::Permissions::from_mode(of.mode() & 0o777))?;
    File::open(new)?.sync_all()
}

fn sync_above(path: &Path) -> io::Result<()> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    File::open(above.unwrap_or(Path::new(".")))?.sync_all()
}
