//! Blob of a simulated disk: its durable contents, and the writes not yet synced.

use std::io;

use crate::disk::{Countdown, SimDisk};

/// An unsynced change.
#[derive(Clone, Debug)]
pub(crate) enum Pending {
    Write { offset: usize, data: Vec<u8> },
    SetLen(usize),
}

#[derive(Debug, Default)]
pub(crate) struct BlobState {
    /// Tells a blob from a later one with the same name.
    pub(crate) serial: u64,
    /// The contents that reads return.
    pub(crate) now: Vec<u8>,
    /// The contents that survive any crash.
    pub(crate) durable: Vec<u8>,
    /// The changes from `durable` to `now`, in order.
    pub(crate) pending: Vec<Pending>,
    /// Whether the blob's existence is durable.
    pub(crate) exists_durably: bool,
}

impl BlobState {
    pub(crate) fn len(&self) -> u64 {
        self.now.len() as u64
    }

    pub(crate) fn filled(&self) -> u64 {
        let is_filled = |block: &&[u8]| block.iter().any(|byte| *byte != 0);
        self.now.chunks(BLOCK).filter(is_filled).map(|block| block.len() as u64).sum()
    }

    fn sync(&mut self) {
        self.exists_durably = true;
        for change in std::mem::take(&mut self.pending) {
            apply(&mut self.durable, &change);
        }
    }
}

/// Applies one change.
pub(crate) fn apply(bytes: &mut Vec<u8>, change: &Pending) {
    match change {
        Pending::SetLen(len) => bytes.resize(*len, 0),
        Pending::Write { offset, data } => {
            let end = offset + data.len();
            if end > bytes.len() {
                bytes.resize(end, 0);
            }
            bytes[*offset..end].copy_from_slice(data);
        }
    }
}

/// A handle on a blob, valid for one power cycle.
#[derive(Clone)]
pub(crate) struct BlobHandle {
    pub(crate) disk: SimDisk,
    pub(crate) name: String,
    pub(crate) serial: u64,
    pub(crate) cycle: u64,
}

impl BlobHandle {
    /// Opens a blob, creating it if it does not exist; its existence is durable then.
    pub(crate) fn open_durable(disk: &SimDisk, name: String, cycle: u64) -> io::Result<Self> {
        Self::open(disk, name, cycle, true)
    }

    /// Opens a blob, creating it if it does not exist; a new one is durable when it is synced.
    pub(crate) fn open_volatile(disk: &SimDisk, name: String, cycle: u64) -> io::Result<Self> {
        Self::open(disk, name, cycle, false)
    }

    fn open(disk: &SimDisk, name: String, cycle: u64, exists_durably: bool) -> io::Result<Self> {
        let serial = disk.with(|d| {
            d.check_power(cycle)?;
            if let Some(blob) = d.blobs.get_mut(&name) {
                blob.exists_durably |= exists_durably;
                return Ok(blob.serial);
            }
            if matches!(d.count_change(cycle)?, Countdown::Now) {
                return Err(d.fail_power());
            }
            d.stats.writes += 1;
            let serial = d.rng.u64();
            d.blobs.insert(name.clone(), BlobState { serial, exists_durably, ..BlobState::default() });
            Ok::<_, io::Error>(serial)
        })?;
        Ok(Self { disk: disk.clone(), name, serial, cycle })
    }

    /// Opens an existing blob.
    pub(crate) fn find(disk: &SimDisk, name: String, cycle: u64) -> io::Result<Self> {
        let serial = disk.with(|d| {
            d.check_power(cycle)?;
            d.blobs.get(&name).map(|blob| blob.serial).ok_or_else(|| io::ErrorKind::NotFound.into())
        });
        serial.map(|serial| Self { disk: disk.clone(), name, serial, cycle })
    }

    pub(crate) fn length(&self) -> io::Result<u64> {
        self.disk.with(|d| {
            d.check_power(self.cycle)?;
            d.blob(self).map(|blob| blob.len())
        })
    }

    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.disk.with(|d| {
            d.check_read(self.cycle)?;
            let (start, end) = span(offset, out.len())?;
            let bytes = d.blob(self)?.now.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?;
            out.copy_from_slice(bytes);
            Ok(())
        })
    }

    pub(crate) fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let (offset, _) = span(offset, data.len())?;
        self.change(Pending::Write { offset, data: data.to_vec() })
    }

    pub(crate) fn resize(&self, len: u64) -> io::Result<()> {
        let (len, _) = span(len, 0)?;
        self.change(Pending::SetLen(len))
    }

    fn change(&self, change: Pending) -> io::Result<()> {
        self.disk.with(|d| {
            let countdown = d.count_change(self.cycle)?;
            let from = d.blob(self)?.now.len();
            let to = match &change {
                Pending::SetLen(len) => *len,
                Pending::Write { offset, data } => from.max(offset + data.len()),
            };
            d.charge(from as u64, to as u64)?;
            d.stats.writes += 1;
            let blob = d.blob(self)?;
            apply(&mut blob.now, &change);
            blob.pending.push(change);
            match countdown {
                Countdown::NotYet => Ok(()),
                Countdown::Now => Err(d.fail_power()),
            }
        })
    }

    /// A crash during a sync comes before it or after it, at random.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.disk.with(|d| {
            let countdown = d.count_change(self.cycle)?;
            d.stats.syncs += 1;
            if matches!(countdown, Countdown::Now) {
                if d.rng.chance(500_000) {
                    d.blob(self)?.sync();
                }
                return Err(d.fail_power());
            }
            d.blob(self)?.sync();
            Ok(())
        })
    }
}

fn span(offset: u64, len: usize) -> io::Result<(usize, usize)> {
    let start = usize::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    let end = start.checked_add(len).ok_or(io::ErrorKind::InvalidInput)?;
    if end > BLOB_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok((start, end))
}

/// A hole consists of whole blocks.
const BLOCK: usize = 4096;
/// Largest blob: blobs are held in memory, twice.
const BLOB_MAX: usize = 1 << 30;
