//! Journal of operations in files, for cells whose servers keep none.
//!
//! Each operation has a file `NUMBER.json`, replaced atomically at every step. Its holder locks `NUMBER.lock`; the lock
//! ends with the process, also after a crash. The journal has only operations begun on this machine by this user.

use crate::error::{CommandError, CommandResult};
use afs_admin::Journal;
use afs_admin::journal::{Draft, Holder, JournalError, Lease, OperationId, Pending, Record};
use afs_cell::OperationFile;
use afs_files::{Versioned, secret_file};
use afs_own::{self as own, Opening};
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::future::ready;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

/// A journal in a directory.
pub(super) struct FileJournal {
    directory: PathBuf,
    /// Locks of the operations that this process holds.
    held: Mutex<BTreeMap<u64, File>>,
}

type Outcome<T> = Result<T, JournalError>;

impl FileJournal {
    /// Opens the journal in a directory, which is created if it is missing.
    ///
    /// # Errors
    /// It cannot be created.
    pub(super) fn open(directory: PathBuf) -> CommandResult<Self> {
        own::given_directory(&directory).map_err(|e| {
            CommandError::failed(format!("vos: cannot keep a journal in {}: {e}", directory.display()))
        })?;
        Ok(Self { directory, held: Mutex::default() })
    }

    /// Locks the directory, for changes that read numbers and files together.
    fn alone(&self) -> Outcome<File> {
        let file = lock_file(&self.directory.join("lock")).map_err(|e| self.failed(&e))?;
        flock(&file, FlockOperation::LockExclusive).map_err(|e| self.failed(&e.into()))?;
        Ok(file)
    }

    fn failed(&self, error: &std::io::Error) -> JournalError {
        JournalError::Store(format!("{}: {error}", self.directory.display()))
    }

    fn file(&self, id: u64) -> PathBuf {
        self.directory.join(format!("{id}.json"))
    }

    fn numbers(&self) -> Outcome<Vec<u64>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(|e| self.failed(&e))? {
            let name = entry.map_err(|e| self.failed(&e))?.file_name();
            let number: Option<u64> =
                name.to_str().and_then(|n| n.strip_suffix(".json")).and_then(|n| n.parse().ok());
            found.extend(number);
        }
        found.sort_unstable();
        Ok(found)
    }

    fn read(&self, id: u64) -> Outcome<Option<OperationFile>> {
        OperationFile::read_file(&self.file(id)).map_err(|e| JournalError::Store(e.to_string()))
    }

    fn write(&self, id: u64, kept: &OperationFile) -> Outcome<()> {
        kept.write_file(&self.file(id)).map_err(|e| JournalError::Store(e.to_string()))
    }

    /// Takes the lock of an operation; `None` if another process holds it.
    fn try_hold(&self, id: u64) -> Outcome<Option<File>> {
        let path = self.directory.join(format!("{id}.lock"));
        let file = lock_file(&path).map_err(|e| self.failed(&e))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(e) => Err(self.failed(&e.into())),
        }
    }

    fn holds(&self, id: u64) -> bool {
        self.held.lock().contains_key(&id)
    }

    fn hold(&self, id: u64, file: File) {
        self.held.lock().insert(id, file);
    }

    fn begin_now(&self, draft: &Draft) -> Outcome<Lease> {
        let _alone = self.alone()?;
        let numbers = self.numbers()?;
        for id in &numbers {
            if let Some(other) = self.read(*id)?.filter(|k| k.volume == draft.volume.0) {
                return Err(JournalError::Busy(other.holder, other.operation));
            }
        }
        let id = self.next_number(&numbers)?;
        let file = self.try_hold(id)?.ok_or(JournalError::Lost)?;
        let now = now();
        let kept = OperationFile {
            operation: draft.word.clone(),
            volume: draft.volume.0,
            name: draft.name.clone(),
            step: draft.step.clone(),
            holder: draft.holder.clone(),
            holding: 1,
            since: now,
            heard: now,
            detail: value(&draft.detail)?,
        };
        self.write(id, &kept)?;
        self.hold(id, file);
        Ok(Lease { id: OperationId(id), holding: 1 })
    }

    /// A number that was never used.
    fn next_number(&self, numbers: &[u64]) -> Outcome<u64> {
        let path = self.directory.join("last");
        let last = fs::read_to_string(&path).ok().and_then(|t| t.trim().parse().ok()).unwrap_or(0);
        let id = numbers.last().copied().unwrap_or(0).max(last) + 1;
        secret_file::write(&path, id.to_string().as_bytes())
            .map_err(|e| JournalError::Store(e.to_string()))?;
        Ok(id)
    }

    fn change(&self, lease: Lease, change: impl FnOnce(&mut OperationFile)) -> Outcome<()> {
        let mut kept = self.held_by(lease)?;
        change(&mut kept);
        kept.heard = now();
        self.write(lease.id.0, &kept)
    }

    fn held_by(&self, lease: Lease) -> Outcome<OperationFile> {
        let kept = self.read(lease.id.0)?.filter(|k| k.holding == lease.holding && self.holds(lease.id.0));
        kept.ok_or(JournalError::Lost)
    }

    fn end_now(&self, lease: Lease) -> Outcome<()> {
        let _alone = self.alone()?;
        self.held_by(lease)?;
        fs::remove_file(self.file(lease.id.0)).map_err(|e| self.failed(&e))?;
        let _ = fs::remove_file(self.directory.join(format!("{}.lock", lease.id.0)));
        self.held.lock().remove(&lease.id.0);
        Ok(())
    }

    fn open_now(&self) -> Outcome<Vec<Record>> {
        let mut found = Vec::new();
        for id in self.numbers()? {
            if let Some(kept) = self.read(id)? {
                let lapsed = !self.holds(id) && self.try_hold(id)?.is_some();
                found.push(kept.record(id, lapsed));
            }
        }
        Ok(found)
    }

    fn take_over_now(&self, id: u64, holder: Holder) -> Outcome<(Lease, Record)> {
        let _alone = self.alone()?;
        let mut kept = self.read(id)?.ok_or(JournalError::Lost)?;
        let free = if self.holds(id) { None } else { self.try_hold(id)? };
        let file = free.ok_or_else(|| JournalError::Busy(kept.holder.clone(), kept.operation.clone()))?;
        (kept.holder, kept.holding, kept.heard) = (holder, kept.holding + 1, now());
        self.write(id, &kept)?;
        self.hold(id, file);
        Ok((Lease { id: OperationId(id), holding: kept.holding }, kept.record(id, false)))
    }
}

impl Journal for FileJournal {
    fn begin(&self, draft: Draft) -> Pending<'_, Lease> {
        Box::pin(ready(self.begin_now(&draft)))
    }

    fn step(&self, lease: Lease, step: String, detail: bytes::Bytes) -> Pending<'_, ()> {
        let written = value(&detail)
            .and_then(|detail| self.change(lease, |kept| (kept.step, kept.detail) = (step, detail)));
        Box::pin(ready(written))
    }

    fn heartbeat(&self, lease: Lease) -> Pending<'_, ()> {
        // The lock on the file shows that the holder is alive.
        Box::pin(ready(self.held_by(lease).map(drop)))
    }

    fn end(&self, lease: Lease) -> Pending<'_, ()> {
        Box::pin(ready(self.end_now(lease)))
    }

    fn open(&self) -> Pending<'_, Vec<Record>> {
        Box::pin(ready(self.open_now()))
    }

    fn take_over(&self, id: OperationId, holder: Holder) -> Pending<'_, (Lease, Record)> {
        Box::pin(ready(self.take_over_now(id.0, holder)))
    }
}

fn value(detail: &[u8]) -> Outcome<serde_json::Value> {
    serde_json::from_slice(detail).map_err(|e| JournalError::Store(e.to_string()))
}

fn lock_file(path: &Path) -> std::io::Result<File> {
    Opening::write().or_make().open(path)
}

fn now() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_wire::ids::VolumeId;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn wait<T>(answer: Pending<'_, T>) -> Outcome<T> {
        match pin!(answer).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => answer,
            Poll::Pending => panic!("files answer at once"),
        }
    }

    fn draft(volume: u32) -> Draft {
        Draft {
            word: "move".into(),
            volume: VolumeId(volume),
            name: "v".into(),
            holder: Holder { who: "me".into(), host: "h".into(), pid: 1 },
            step: "lock".into(),
            detail: "{}".into(),
        }
    }

    #[test]
    fn an_operation_outlives_its_holder_and_is_taken_over_once() {
        let dir = tempfile::tempdir().unwrap();
        let open = || FileJournal::open(dir.path().to_owned()).unwrap();
        let first = open();
        let lease = wait(first.begin(draft(7))).unwrap();
        wait(first.step(lease, "clone".into(), "{\"a\":1}".into())).unwrap();
        let other = open();
        assert!(matches!(wait(other.begin(draft(7))), Err(JournalError::Busy(..))));
        assert!(!wait(other.open()).unwrap()[0].lapsed);
        assert!(matches!(wait(other.take_over(lease.id, Holder::default())), Err(JournalError::Busy(..))));
        drop(first);
        assert!(wait(other.open()).unwrap()[0].lapsed);
        let (taken, record) = wait(other.take_over(lease.id, Holder::default())).unwrap();
        assert_eq!((record.draft.step.as_str(), &record.draft.detail[..]), ("clone", &b"{\"a\":1}"[..]));
        assert_eq!(wait(open().step(lease, "x".into(), "{}".into())), Err(JournalError::Lost));
        wait(other.end(taken)).unwrap();
        assert_eq!(wait(other.open()), Ok(vec![]));
        assert_eq!(wait(other.begin(draft(7))).unwrap().id, OperationId(2));
    }
}
