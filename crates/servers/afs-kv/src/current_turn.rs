//! Blob that names the log's current turn. By it recovery finds that a log file is missing, empty, zeroed or an older copy.
//! Layout: `docs/format.md` "Log record".

use std::io;
use std::sync::Arc;

use crate::damage::Damage;
use crate::error::KvError;
use crate::log_turn::{Salt, Turn};
use crate::medium::{Blob, Medium};

/// Name of the blob.
pub(crate) const NAME: &str = "log.turn";

/// What the log holds at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// A turn of which at least one batch may have been acknowledged, in a file of the log.
    Turn { file: usize, turn: Turn },
    /// Nothing that the base does not have: it holds all batches up to this one.
    Nothing { through: u64 },
}

/// The blob: two slots, written by turns.
pub(crate) struct CurrentTurn {
    blob: Arc<dyn Blob>,
    /// Number of the last slot that was written, and what it says. `None` in a blob without a whole slot.
    last: Option<(u64, Held)>,
}

impl CurrentTurn {
    /// Opens the blob, creating it empty if it does not exist.
    pub(crate) fn open(medium: &dyn Medium) -> Result<Self, KvError> {
        Self::of(medium.open(NAME)?)
    }

    /// Reads a blob.
    pub(crate) fn of(blob: Arc<dyn Blob>) -> Result<Self, KvError> {
        let mut slots = vec![0; 2 * SLOT_LEN];
        let len = (blob.len()? as usize).min(slots.len());
        blob.read_at(0, &mut slots[..len])?;
        let last = slots.chunks_exact(SLOT_LEN).filter_map(decode).max_by_key(|(number, _)| *number);
        Ok(Self { blob, last })
    }

    /// What it says.
    pub(crate) fn held(&self) -> Option<Held> {
        self.last.map(|(_, held)| held)
    }

    /// Writes what the log holds from now on, and returns when that is durable. After an error it says this or what it said before.
    pub(crate) fn write(&mut self, held: Held) -> io::Result<()> {
        let number = self.last.map_or(0, |(number, _)| number) + 1;
        if self.last.is_none() {
            // Space for both, so that a full medium does not matter later.
            self.blob.write_at(0, &[0; 2 * SLOT_LEN])?;
        }
        self.blob.write_at((number % 2) * SLOT_LEN as u64, &encode(number, held))?;
        self.blob.sync()?;
        self.last = Some((number, held));
        Ok(())
    }
}

/// Damage of a blob that says nothing.
pub(crate) fn unreadable() -> Damage {
    Damage::of(NAME, "does not name the current turn of the log")
}

fn encode(number: u64, held: Held) -> Vec<u8> {
    let (kind, salt, sequence) = match held {
        Held::Turn { file, turn } => (file as u8, turn.salt, turn.first),
        Held::Nothing { through } => (NOTHING, Salt([0; 16]), through),
    };
    let mut out = vec![0; SLOT_LEN];
    out[..4].copy_from_slice(&MAGIC);
    out[8..16].copy_from_slice(&number.to_le_bytes());
    out[16] = kind;
    out[24..40].copy_from_slice(&salt.0);
    out[40..USED_LEN].copy_from_slice(&sequence.to_le_bytes());
    let sum = crc32c::crc32c(&out[8..USED_LEN]);
    out[4..8].copy_from_slice(&sum.to_le_bytes());
    out
}

fn decode(slot: &[u8]) -> Option<(u64, Held)> {
    let number = |at: usize| Some(u64::from_le_bytes(slot.get(at..at + 8)?.try_into().ok()?));
    let sum = u32::from_le_bytes(slot.get(4..8)?.try_into().ok()?);
    if slot[..4] != MAGIC || crc32c::crc32c(slot.get(8..USED_LEN)?) != sum {
        return None;
    }
    let salt = Salt(slot.get(24..40)?.try_into().ok()?);
    let held = match *slot.get(16)? {
        NOTHING => Held::Nothing { through: number(40)? },
        file @ (0 | 1) => Held::Turn { file: usize::from(file), turn: Turn { salt, first: number(40)? } },
        _ => return None,
    };
    Some((number(8)?, held))
}

const MAGIC: [u8; 4] = *b"AKN1";
const NOTHING: u8 = 2;
const USED_LEN: usize = 48;
/// Length of a slot, which has a block of its own.
const SLOT_LEN: usize = 4096;
