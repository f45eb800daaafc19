//! The beginning of a log file: which turn its records are of. Layout: `docs/format.md` "Log record".

use crate::error::KvError;
use crate::medium::Blob;

/// What the records of one turn have in common with no others. Random, and known to nobody who stores rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Salt(pub(crate) [u8; 16]);

/// A turn of the log: the records from one beginning of a file to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) salt: Salt,
    /// The sequence number of its first record.
    pub(crate) first: u64,
}

/// Where the first record of a turn begins. In front of it is the turn, twice, so that one damaged block does not take away all its records.
pub(crate) const RECORDS_START: u64 = 2 * COPY_LEN as u64;

impl Turn {
    /// What a file begins with: [`RECORDS_START`] bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; COPY_LEN];
        out[..4].copy_from_slice(&MAGIC);
        out[8..24].copy_from_slice(&self.salt.0);
        out[24..32].copy_from_slice(&self.first.to_le_bytes());
        let sum = crc32c::crc32c(&out[8..TURN_LEN]);
        out[4..8].copy_from_slice(&sum.to_le_bytes());
        out.repeat(2)
    }

    /// The turn that a file was last begun with. `None` for a file without one, and for one whose beginning was being written when the
    /// machine stopped, so that nothing in it was acknowledged.
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
/// Each copy has a block of its own.
const COPY_LEN: usize = 4096;
