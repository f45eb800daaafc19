//! Check of the directory of a drive that is not served: its state, and every chunk of its segments.

use super::DrivesError;
use super::daemon::lock_to_read;
use super::daemon_state::{DaemonState, STORE};
use afs_drive::{BAD_MAX, BadPart, FileSegments, ScanReport, SegmentDrive};
use afs_env::EnvRef;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// The directory of a drive that nobody may serve meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfflineDrive(PathBuf);

/// What a check found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OfflineDriveReport {
    /// The directory.
    pub path: PathBuf,
    /// Whether nothing is damaged.
    pub whole: bool,
    /// What is damaged, at most [`BAD_MAX`] parts.
    pub damage: Vec<DriveDamage>,
    /// Damaged parts that are not listed.
    pub unlisted: u64,
    /// Segments that were read.
    pub segments: u64,
    /// Chunks that are whole.
    pub chunks: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A damaged part of a file.
#[derive(Clone, Debug, Serialize)]
pub struct DriveDamage {
    /// The file.
    pub file: String,
    /// The first of its damaged bytes, and the end of them; nothing for a file that is damaged or missing as a whole.
    pub range: Option<(u64, u64)>,
    /// The damage, in words.
    pub what: String,
}

impl OfflineDrive {
    /// The drive in a directory; `None` if nothing there is of a drive.
    #[must_use]
    pub fn find(directory: &Path) -> Option<Self> {
        let names = fs::read_dir(directory).ok()?.flatten().map(|entry| entry.file_name());
        let is_one =
            |name: &str| name == DaemonState::FILE || name.starts_with(STORE) || name.ends_with(".seg");
        names.into_iter().any(|name| name.to_str().is_some_and(is_one)).then(|| Self(directory.to_owned()))
    }

    /// Reads all of it, one chunk at a time, and writes nothing. The directory may also be one with segments alone.
    ///
    /// # Errors
    /// It is served, or cannot be read.
    pub async fn check(&self, env: &EnvRef) -> Result<OfflineDriveReport, DrivesError> {
        let mut report = OfflineDriveReport { path: self.0.clone(), ..OfflineDriveReport::default() };
        let stores = self.stores()?;
        // Segments alone have the lock of their own directory.
        let is_drive = stores != [self.0.clone()];
        let _lock = if is_drive { lock_to_read(&self.0)? } else { None };
        report.damage.extend(is_drive.then(|| self.damage_of_state()).flatten());
        for store in stores {
            let cannot = |error| DrivesError::Directory { path: store.clone(), error };
            let segments = FileSegments::read_only(&store).map_err(cannot)?;
            let drive = SegmentDrive::open(segments, env.clone(), u64::MAX).map_err(cannot)?;
            let scanned = drive.scan().await.map_err(|error| DrivesError::Store(error.to_string()))?;
            report.add(scanned);
        }
        report.whole = report.damage.is_empty();
        Ok(report)
    }

    /// The directories with segments.
    fn stores(&self) -> Result<Vec<PathBuf>, DrivesError> {
        let cannot = |error| DrivesError::Directory { path: self.0.clone(), error };
        let entries: Result<Vec<_>, _> = fs::read_dir(&self.0).map_err(cannot)?.collect();
        let names: Vec<_> = entries.map_err(cannot)?.into_iter().map(|entry| entry.file_name()).collect();
        let has = |test: fn(&str) -> bool| names.iter().any(|name| name.to_str().is_some_and(test));
        if has(|name| name.ends_with(".seg")) && !has(|name| name == DaemonState::FILE) {
            return Ok(vec![self.0.clone()]);
        }
        let stores = names.iter().filter(|name| name.to_string_lossy().starts_with(STORE));
        let mut stores: Vec<_> = stores.map(|name| self.0.join(name)).collect();
        stores.sort();
        Ok(stores)
    }

    fn damage_of_state(&self) -> Option<DriveDamage> {
        let file = self.0.join(DaemonState::FILE).display().to_string();
        let what = match DaemonState::kept(&self.0) {
            Ok(Some(_)) => return None,
            Ok(None) => format!("is missing; {}", DaemonState::remedy()),
            Err(error) => error.to_string(),
        };
        Some(DriveDamage { file, range: None, what })
    }
}

impl OfflineDriveReport {
    pub(super) fn add(&mut self, scanned: ScanReport) {
        self.segments += scanned.segments;
        self.chunks += scanned.chunks;
        self.bytes += scanned.bytes;
        let damage = |bad: BadPart| DriveDamage {
            file: bad.place,
            range: Some((bad.range.start, bad.range.end)),
            what: bad.what,
        };
        let (bad, left) = (scanned.bad.len(), BAD_MAX.saturating_sub(self.damage.len()));
        self.damage.extend(scanned.bad.into_iter().take(left).map(damage));
        self.unlisted += scanned.unlisted + bad.saturating_sub(left) as u64;
    }
}
