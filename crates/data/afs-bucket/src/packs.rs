//! State of a drive: the pack that takes chunks, the packs being put, and what is known of the others.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use afs_drive::{ChunkId, ChunkRef, DriveError};
use afs_env::sync::oneshot;
use bytes::Bytes;

use crate::bucket::Failure;
use crate::names::{PackId, RunId};
use crate::pack::{Builder, Pack, Salt};
use crate::requests::Failed;
use crate::tally::Tally;

/// Bounds of the packs in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Length at which a pack is put, in bytes.
    pub(crate) pack: usize,
    /// Packs being put at a time; with as many, a write waits.
    pub(crate) pending: usize,
    /// Packs to be deleted; beyond that they are left to the sweep of the next run.
    pub(crate) doomed: usize,
}

/// Invariants: a chunk whose write has completed is in `open`, in `pending`, in the store, or dead. A number is given to one
/// pack only. A pack that failed to be put stays in `pending`, so that nothing is lost until it is put again.
pub(crate) struct Packs {
    bounds: Bounds,
    run: Option<(RunId, Salt)>,
    above: RunId,
    next: u32,
    open: Option<Builder>,
    pending: BTreeMap<PackId, Pending>,
    pub(crate) tally: Tally,
    /// Packs to be deleted.
    doomed: BTreeSet<PackId>,
    /// Why nothing is written any more.
    refused: Option<DriveError>,
    /// Puts that have failed so far, and the last error.
    failures: (u64, Option<DriveError>),
    /// Whether a pack was completed since the run was last seen to be the newest.
    unchecked: bool,
}

struct Pending {
    pack: Arc<Pack>,
    putting: bool,
    dead: bool,
    waiting: Vec<Told>,
}

/// A waiter for the result of a PUT.
pub(crate) type Told = oneshot::Sender<Result<(), DriveError>>;

/// What became of a chunk to be written.
pub(crate) enum Appended {
    /// It is in a pack; the pack before it may be complete, and is to be put then.
    Chunk(ChunkRef, Option<Arc<Pack>>),
    /// As many packs as may be are being put.
    Full,
}

/// Where a chunk is.
pub(crate) enum Place {
    Dead,
    Memory(Bytes),
    Store,
}

impl Packs {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            run: None,
            above: RunId(0),
            next: 0,
            open: None,
            pending: BTreeMap::new(),
            tally: Tally::default(),
            doomed: BTreeSet::new(),
            refused: None,
            failures: (0, None),
            unchecked: false,
        }
    }

    /// The run, once it has a number.
    pub(crate) fn run(&self) -> Option<RunId> {
        self.run.map(|(run, _)| run)
    }

    /// Runs up to this number are others.
    pub(crate) fn above(&self) -> RunId {
        self.above
    }

    pub(crate) fn begin_run(&mut self, run: RunId, salt: Salt) {
        (self.run, self.next) = (Some((run, salt)), 0);
    }

    /// Continues in a run after that of this chunk.
    pub(crate) fn continue_after(&mut self, last: ChunkId) {
        let last = PackId::of(last).run();
        self.above = self.above.max(last);
        if self.run().is_some_and(|run| run <= last) {
            self.run = None;
        }
    }

    /// Ends writing for good.
    pub(crate) fn refuse(&mut self, error: DriveError) {
        self.refused.get_or_insert(error);
    }

    /// # Errors
    /// The drive must be opened again.
    pub(crate) fn check(&self) -> Result<(), DriveError> {
        if self.refused.is_some() { Err(DriveError::NeedsReopen) } else { Ok(()) }
    }

    /// Adds a chunk.
    pub(crate) fn append(&mut self, data: &Bytes, crc: u32) -> Result<Appended, DriveError> {
        self.check()?;
        let (run, salt) = self.run.ok_or(DriveError::Closed)?;
        let limit = self.bounds.pack;
        let has_space = self.open.as_ref().is_some_and(|open| open.fits(data.len(), limit));
        // A flush seals packs that are not full: where these are not put, none is begun behind them either.
        if !has_space && self.pending.len() >= self.bounds.pending {
            return Ok(Appended::Full);
        }
        let full = if has_space { None } else { self.seal() };
        let first = self.open.is_none();
        if first {
            let id = PackId(run.first_pack().0 + u64::from(self.next));
            // The last number is never given, so that this one is not given twice.
            self.next = self.next.checked_add(1).ok_or(DriveError::NoSpace)?;
            self.open = Some(Builder::new(id, salt));
        }
        let Some(open) = &mut self.open else { return Err(DriveError::Closed) };
        let chunk = open.push(data.clone(), crc);
        self.tally.born(chunk.id, first);
        Ok(Appended::Chunk(chunk, full))
    }

    /// Completes the pack that takes chunks. It is to be put then.
    pub(crate) fn seal(&mut self) -> Option<Arc<Pack>> {
        let pack = Arc::new(self.open.take()?.seal());
        self.unchecked = true;
        let pending = Pending { pack: pack.clone(), putting: true, dead: false, waiting: Vec::new() };
        self.pending.insert(pack.id, pending);
        Some(pack)
    }

    /// The packs that failed to be put, which are to be put again.
    pub(crate) fn failed(&mut self) -> Vec<Arc<Pack>> {
        let failed = self.pending.values_mut().filter(|pending| !pending.putting);
        failed.map(|pending| (pending.putting = true, pending.pack.clone()).1).collect()
    }

    /// One receiver for each pack being put, told how that ends.
    pub(crate) fn await_pending(&mut self) -> Vec<oneshot::Receiver<Result<(), DriveError>>> {
        let wait = |pending: &mut Pending| {
            let (sender, receiver) = oneshot::channel();
            pending.waiting.push(sender);
            receiver
        };
        self.pending.values_mut().map(wait).collect()
    }

    /// Puts that have failed so far, and the last error.
    pub(crate) fn failures(&self) -> (u64, Option<DriveError>) {
        self.failures.clone()
    }

    /// Whether the run is to be compared with the newest; asked once.
    pub(crate) fn take_unchecked(&mut self) -> bool {
        std::mem::take(&mut self.unchecked)
    }

    pub(crate) fn set_unchecked(&mut self) {
        self.unchecked = true;
    }

    /// A put has ended. Returns whom to tell what.
    pub(crate) fn put_ended(
        &mut self,
        id: PackId,
        result: Result<(), Failed>,
    ) -> (Vec<Told>, Result<(), DriveError>) {
        let Some(pending) = self.pending.get_mut(&id) else { return (Vec::new(), Ok(())) };
        let (waiting, dead) = (std::mem::take(&mut pending.waiting), pending.dead);
        pending.putting = false;
        if result.is_ok() || dead {
            self.pending.remove(&id);
        }
        if dead {
            // Perhaps it was put.
            self.doom(id);
            return (waiting, Ok(()));
        }
        let result = result.map_err(|failed| self.put_failed(failed));
        (waiting, result)
    }

    fn put_failed(&mut self, failed: Failed) -> DriveError {
        let is_taken = failed.failure == Failure::Exists;
        let error = DriveError::from(failed);
        if is_taken {
            self.refuse(error.clone());
        }
        self.failures = (self.failures.0 + 1, Some(error.clone()));
        error
    }

    /// Where a chunk is.
    pub(crate) fn find(&self, chunk: ChunkRef) -> Place {
        if self.tally.is_dead(chunk.id) {
            return Place::Dead;
        }
        let id = PackId::of(chunk.id);
        let open = self.open.as_ref().filter(|open| open.id() == id).map(|open| open.data(chunk));
        let pending = || self.pending.get(&id).map(|pending| pending.pack.data(chunk));
        match open.or_else(pending) {
            Some(Some(data)) => Place::Memory(data.clone()),
            // The pack has no such chunk.
            Some(None) => Place::Dead,
            None => Place::Store,
        }
    }

    /// Marks a chunk as dead.
    pub(crate) fn discard(&mut self, chunk: ChunkId) {
        if !self.tally.discarded(chunk) {
            return;
        }
        let id = PackId::of(chunk);
        if self.open.as_ref().is_some_and(|open| open.id() == id) {
            self.open = None;
            return;
        }
        match self.pending.get_mut(&id) {
            Some(pending) if pending.putting => pending.dead = true,
            _ => {
                self.pending.remove(&id);
                self.doom(id);
            }
        }
    }

    /// Has a pack deleted, or left to the sweep if too many are to be: while the store is away these are also packs of which it
    /// may have nothing, and each store that fails makes one.
    pub(crate) fn doom(&mut self, pack: PackId) {
        if self.doomed.len() < self.bounds.doomed {
            self.doomed.insert(pack);
        }
    }

    /// Some of the packs to be deleted.
    pub(crate) fn doomed(&self, count: usize) -> Vec<PackId> {
        self.doomed.iter().take(count).copied().collect()
    }

    pub(crate) fn deleted(&mut self, pack: PackId) {
        self.doomed.remove(&pack);
    }

    /// The error of a run that is no longer the newest.
    pub(crate) fn superseded(run: RunId) -> DriveError {
        let why = format!("another server has opened this drive: object {} was removed", run.key());
        DriveError::Io(Arc::new(io::Error::other(why)))
    }
}

#[cfg(test)]
#[path = "packs_tests.rs"]
mod tests;
