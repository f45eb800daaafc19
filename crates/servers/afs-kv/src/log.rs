//! Write-ahead log: two blobs used in turn, each overwritten from its start.
//!
//! While one blob is being written, the other holds the batches that the running checkpoint is moving into the base.
//! A blob that finds no room to grow ends its turn early; the first [`ROOM`] bytes of both are allocated from the start.
//! Overwriting in place keeps the file's blocks, so that a sync need not write the file system's own metadata.

use std::io;
use std::sync::Arc;

use afs_env::EnvRef;

use crate::current_turn::{self, CurrentTurn, Held};
use crate::damage::Damage;
use crate::error::KvError;
use crate::log_turn::{RECORDS_START, Salt, Turn};
use crate::medium::{Blob, Medium};
use crate::record;
use crate::recovery::LogFormat;
use crate::spare::{self, Spare};
use crate::txn::Overlay;

/// Invariant: everything in the inactive blob has a sequence number that the base or the frozen memory table
/// contains; the active blob is valid up to `offset`.
pub(crate) struct Log {
    env: EnvRef,
    blobs: [Arc<dyn Blob>; 2],
    allocated: [u64; 2],
    active: usize,
    /// Offset of the next record; 0 at the beginning of a turn.
    offset: u64,
    /// Salt of the current turn.
    salt: Salt,
    current: CurrentTurn,
    limit: u64,
    /// Room for the checkpoint of the turn.
    spare: Arc<Spare>,
    /// The last turn ended early.
    is_tight: bool,
}

/// Why a record was not appended.
pub(crate) enum AppendError {
    /// It was not written; the log is unchanged.
    Refused(KvError),
    /// It may have been written, and be durable if the next open comes before the next record, which takes its place.
    Torn(KvError),
    /// It may or may not be durable.
    Unknown(io::Error),
}

/// The blobs of a log. Each format has names of its own, so that no bytes of one are ever read as the other's.
pub(crate) fn open_blobs(medium: &dyn Medium, format: LogFormat) -> io::Result<[Arc<dyn Blob>; 2]> {
    let [first, second] = names(format);
    Ok([medium.open(first)?, medium.open(second)?])
}

/// Removes the blobs of a log of format 1.
pub(crate) fn remove_format_1(medium: &dyn Medium) -> io::Result<()> {
    let left = medium.list()?;
    let old = names(LogFormat::One).into_iter().filter(|name| left.iter().any(|found| found == name));
    old.into_iter().try_for_each(|name| medium.remove(name))
}

/// The blobs that a store has had since it was created and that are missing.
pub(crate) fn missing(there: &[String]) -> impl Iterator<Item = Damage> {
    let [first, second] = names(LogFormat::Two);
    let missing = [first, second, current_turn::NAME].into_iter();
    let missing = missing.filter(|name| !there.iter().any(|found| found == name));
    missing.map(|name| Damage::of(name, "is missing, and acknowledged changes may be in it: put it back"))
}

pub(crate) fn names(format: LogFormat) -> [&'static str; 2] {
    match format {
        LogFormat::One => ["log.0", "log.1"],
        LogFormat::Two => ["log.a", "log.b"],
    }
}

impl Log {
    /// `limit`: bytes of records after which a blob is full. The next turn does not take the place of the one that is named as current: what
    /// a crash leaves of its beginning must not be taken for a loss.
    pub(crate) fn open(
        medium: &dyn Medium,
        env: EnvRef,
        limit: u64,
        current: CurrentTurn,
        spare: Arc<Spare>,
    ) -> io::Result<Self> {
        let blobs = open_blobs(medium, LogFormat::Two)?;
        for refused in blobs.iter().filter_map(|blob| blob.allocate(ROOM).err()) {
            tracing::debug!(%refused, "a log has no room that is certain");
        }
        let allocated = [blobs[0].len()?, blobs[1].len()?];
        let active = match current.held() {
            Some(Held::Turn { file, .. }) => 1 - file,
            Some(Held::Nothing { .. }) | None => 0,
        };
        let limit = RECORDS_START + limit;
        Ok(Self {
            env,
            blobs,
            allocated,
            active,
            offset: 0,
            salt: Salt([0; 16]),
            current,
            limit,
            spare,
            is_tight: false,
        })
    }

    /// Whether the next batch belongs to the other blob: this one has its records, or no room for more.
    pub(crate) fn is_full(&mut self) -> bool {
        if self.offset == 0 || self.offset >= self.limit {
            return self.offset > 0;
        }
        let end = self.offset + HEADROOM;
        let is_refused = self.allocate(end).is_err_and(|error| spare::is_full(&error))
            || end > ROOM && !self.spare.covers_turn(end);
        // From the first step that is allowed again on, not from the next short turn on.
        self.is_tight = is_refused || self.is_tight && end <= ROOM;
        is_refused
    }

    /// Whether the medium was full when the last turn ended.
    pub(crate) fn is_tight(&self) -> bool {
        self.is_tight
    }

    /// Most bytes of rows that a batch is to have: on a full medium it must not be refused for its length, with all operations in it.
    pub(crate) fn batch_bytes(&self) -> usize {
        if self.is_tight { HEADROOM as usize / 2 } else { usize::MAX }
    }

    /// Marks both blobs as needed. The next turn begins where it would have begun.
    pub(crate) fn mark_full(&mut self) {
        self.active = 1 - self.active;
        self.offset = self.offset.max(self.limit);
    }

    /// Records that the base holds everything up to a batch, if nothing was logged since the last turn ended.
    pub(crate) fn emptied(&mut self, through: u64) -> io::Result<()> {
        if self.offset == 0 { self.current.write(Held::Nothing { through }) } else { Ok(()) }
    }

    /// Continues in the other blob, unless no turn has begun in this one.
    pub(crate) fn rotate(&mut self) {
        if self.offset > 0 {
            self.active = 1 - self.active;
            self.offset = 0;
        }
    }

    /// Writes a batch and returns when it is durable.
    pub(crate) fn append(&mut self, sequence: u64, rows: &Overlay) -> Result<(), AppendError> {
        let mut bytes = Vec::new();
        let mut begun = None;
        if self.offset == 0 {
            self.env.random(&mut self.salt.0);
            let turn = Turn { salt: self.salt, first: sequence };
            bytes = turn.encode();
            begun = Some(Held::Turn { file: self.active, turn });
        }
        bytes.extend_from_slice(&record::encode(self.salt, sequence, rows));
        let end = self.offset + bytes.len() as u64;
        self.allocate(end).map_err(|error| AppendError::Refused(error.into()))?;
        let blob = &self.blobs[self.active];
        blob.write_at(self.offset, &bytes).map_err(|error| AppendError::Torn(error.into()))?;
        blob.sync().map_err(AppendError::Unknown)?;
        // After the turn, which would else be missed at the next open, and before its first batch is acknowledged.
        let named = begun.map_or(Ok(()), |held| self.current.write(held));
        named.map_err(AppendError::Unknown)?;
        self.offset = end;
        Ok(())
    }

    /// Grows the blob in steps, so that most syncs need not write its length and blocks.
    fn allocate(&mut self, end: u64) -> io::Result<()> {
        let blob = &self.blobs[self.active];
        let allocated = &mut self.allocated[self.active];
        while *allocated < end {
            let step = STEP - *allocated % STEP;
            blob.write_at(*allocated, &ZEROS[..step as usize])?;
            *allocated += step;
        }
        Ok(())
    }
}

/// Room that a blob has from the start.
const ROOM: u64 = STEP;
/// Room before a batch.
const HEADROOM: u64 = 64 << 10;
const STEP: u64 = 256 << 10;
static ZEROS: [u8; STEP as usize] = [0; STEP as usize];
