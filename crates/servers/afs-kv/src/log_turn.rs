//! Header of a log file: the turn that its records belong to. Layout: `docs/format.md` "Log record".

use crate::error::KvError;
use crate::medium::Blob;

/// Common to the records of one turn and to no others. Random, and secret from clients that have rows stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Salt(pub(crate) [u8; 16]);

/// A turn of the log: the records written from one start of a file until its next start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) salt: Salt,
    /// The sequence number of its first record.
    pub(crate) first: u64,
}

/// Offset of a turn's first record. Before it is the header, twice, so that one damaged block does not lose all
/// records.
pub(crate) const RECORDS_START: u64 = 2 * COPY_LEN as u64;

impl Turn {
    /// The header: [`RECORDS_START`] bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; COPY_LEN];
        out[..4].copy_from_slice(&MAGIC);
        out[8..24].copy_from_slice(&self.salt.0);
        out[24..32].copy_from_slice(&self.first.to_le_bytes());
        let sum = crc32c::crc32c(&out[8..TURN_LEN]);
        out[4..8].copy_from_slice(&sum.to_le_bytes());
        out.repeat(2)
    }

    /// The turn of a file. `None` for a file without one, and for one whose header was being written at the crash, so
    /// that nothing in it was acknowledged.
    pub(crate) fn read(blob: &dyn Blob) -> Result<Option<Self>, KvError> {
        let mut beginning = vec![0; RECORDS_START as usize];
        if blob.len()? < RECORDS_START {
            return Ok(None);
        }
        blob.read_at(0, &mut beginning)?;
        let copies = beginning.chunks_exact(COPY_LEN).filter_map(Self::decode);
        Ok(copies.max_by_key(|turn| turn.first))
    }

    fn decode(copy: &[u8]) -> Option<Self> {
        let sum = u32::from_le_bytes(copy.get(4..8)?.try_into().ok()?);
        let turn = Self {
            salt: Salt(copy.get(8..24)?.try_into().ok()?),
            first: u64::from_le_bytes(copy.get(24..32)?.try_into().ok()?),
        };
        (copy[..4] == MAGIC && crc32c::crc32c(copy.get(8..TURN_LEN)?) == sum).then_some(turn)
    }
}

const MAGIC: [u8; 4] = *b"AKT2";
const TURN_LEN: usize = 32;
/// Length of each copy, which has a block of its own.
const COPY_LEN: usize = 4096;
