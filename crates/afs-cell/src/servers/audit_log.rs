//! Audit log in files: `audit.log` in the state directory, one record a line, in JSON.

use afs_own::Opening;
use afs_server::audit::{AuditRecord, AuditSink};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

/// Name of the current file; older ones have a number after it.
const FILE: &str = "audit.log";
/// Size at which a file is put aside, in bytes.
const BYTES_MAX: u64 = 64 << 20;
/// Older files kept; the oldest is removed.
const KEPT: u32 = 4;

/// Writer of audit records to files that only the owner may read.
pub struct AuditLog {
    path: PathBuf,
    bytes_max: u64,
    open: Mutex<Option<Appended>>,
}

/// The current file, which nothing else writes.
struct Appended {
    file: File,
    bytes: u64,
}

impl AuditLog {
    /// The audit log of a state directory. No file is created before the first record.
    #[must_use]
    pub fn of(state: &Path) -> Self {
        Self { path: state.join(FILE), bytes_max: BYTES_MAX, open: Mutex::new(None) }
    }

    fn append(&self, lines: &str) -> io::Result<()> {
        let mut open = self.open.lock();
        let current = match &mut *open {
            Some(current) => current,
            none => none.insert(Appended::open(&self.path)?),
        };
        if let Err(error) = current.file.write_all(lines.as_bytes()) {
            // How much of it was written is unknown.
            *open = None;
            return Err(error);
        }
        current.bytes += lines.len() as u64;
        if current.bytes > self.bytes_max {
            *open = None;
            self.put_aside()?;
        }
        Ok(())
    }

    fn put_aside(&self) -> io::Result<()> {
        let numbered = |n: u32| match n {
            0 => self.path.clone(),
            n => self.path.with_extension(format!("log.{n}")),
        };
        for n in (0..KEPT).rev() {
            match fs::rename(numbered(n), numbered(n + 1)) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Appended {
    fn open(path: &Path) -> io::Result<Self> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let opened = Opening::append().or_make().open(path);
        let file = opened.map_err(named)?;
        let bytes = file.metadata()?.len();
        Ok(Self { file, bytes })
    }
}

impl AuditSink for AuditLog {
    fn write(&self, records: &[AuditRecord]) -> io::Result<()> {
        let lines: String = records.iter().map(|record| record.to_json() + "\n").collect();
        self.append(&lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn lines_are_appended_and_old_files_go() {
        let dir = tempfile::tempdir().unwrap();
        let log = AuditLog { bytes_max: 20, ..AuditLog::of(dir.path()) };
        log.write(&[AuditRecord::Lost(1)]).unwrap();
        let path = dir.path().join(FILE);
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"lost\":1}\n");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        for n in 2..20 {
            log.write(&[AuditRecord::Lost(n)]).unwrap();
        }
        let files = fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(files, 1 + KEPT as usize, "the one that is written and those kept");
        let newest = fs::read_to_string(dir.path().join("audit.log.1")).unwrap();
        assert_eq!(newest, "{\"lost\":17}\n{\"lost\":18}\n");
    }
}
