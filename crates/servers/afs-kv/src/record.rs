//! Encoding of a batch as a log record. Layout: `docs/format.md` "Log record".

use bytes::Bytes;

use crate::log_turn::Salt;
use crate::masking;
use crate::txn::Overlay;

/// Length of the fixed part before the rows.
pub(crate) const HEAD_LEN: usize = 40;

/// Records begin at multiples of this.
pub(crate) const ALIGNMENT: usize = 8;

/// Encodes a batch for a turn of the log, padded to the alignment.
pub(crate) fn encode(salt: Salt, sequence: u64, rows: &Overlay) -> Vec<u8> {
    let mut out = vec![0; HEAD_LEN];
    encode_rows(rows, &mut out);
    let mask = masking::needed(&out[HEAD_LEN..], salt);
    if let Some(mask) = mask {
        masking::apply(mask, &mut out[HEAD_LEN..]);
        out.splice(HEAD_LEN..HEAD_LEN, mask.to_le_bytes());
    }
    let payload = (out.len() - HEAD_LEN) as u32;
    let count = rows.len() as u32 | if mask.is_some() { MASKED } else { 0 };
    out[..4].copy_from_slice(&MAGIC);
    out[8..24].copy_from_slice(&salt.0);
    out[24..32].copy_from_slice(&sequence.to_le_bytes());
    out[32..36].copy_from_slice(&payload.to_le_bytes());
    out[36..40].copy_from_slice(&count.to_le_bytes());
    let sum = crc32c::crc32c(&out[8..]);
    out[4..8].copy_from_slice(&sum.to_le_bytes());
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
    out
}

pub(crate) fn encode_rows(rows: &Overlay, out: &mut Vec<u8>) {
    for (key, value) in rows {
        out.extend_from_slice(&(key.len() as u32).to_le_bytes());
        let len = value.as_ref().map_or(DELETED, |value| value.len() as u32);
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(key);
        out.extend_from_slice(value.as_deref().unwrap_or_default());
    }
}

/// The fixed part of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) sequence: u64,
    pub(crate) payload: usize,
    sum: u32,
    rows: u32,
    /// Bytes of the fixed part.
    fixed: usize,
}

impl Head {
    /// Decodes the fixed part; `None` if no record of this turn begins here. A turn's salt is never among the rows of its
    /// records ([`masking`]), so that data stored by a user is never taken for a record.
    pub(crate) fn decode(bytes: &[u8; HEAD_LEN], salt: Salt) -> Option<Self> {
        let head = Self {
            sequence: long(bytes, 24),
            payload: word(bytes, 32) as usize,
            sum: word(bytes, 4),
            rows: word(bytes, 36),
            fixed: HEAD_LEN,
        };
        (bytes[..4] == MAGIC && bytes[8..24] == salt.0).then_some(head)
    }

    /// Decodes the fixed part of a record of format 1; `None` if none begins here.
    pub(crate) fn decode_format_1(bytes: &[u8; FORMAT_1_HEAD_LEN]) -> Option<Self> {
        let head = Self {
            sequence: long(bytes, 8),
            payload: word(bytes, 16) as usize,
            sum: word(bytes, 4),
            rows: word(bytes, 20),
            fixed: FORMAT_1_HEAD_LEN,
        };
        (bytes[..4] == FORMAT_1_MAGIC).then_some(head)
    }

    /// Bytes of the record, without the padding.
    pub(crate) fn len(&self) -> usize {
        self.fixed + self.payload
    }

    /// Distance from the beginning of this record to the beginning of the next one.
    pub(crate) fn stride(&self) -> u64 {
        (self.len() as u64).next_multiple_of(ALIGNMENT as u64)
    }

    /// Verifies the checksum of `record` (fixed part and payload).
    pub(crate) fn verify(&self, record: &[u8]) -> bool {
        record.len() == self.len() && crc32c::crc32c(&record[8..]) == self.sum
    }

    /// The rows of a verified record; `None` if their lengths do not add up.
    pub(crate) fn rows(&self, record: &Bytes) -> Option<Vec<(Bytes, Option<Bytes>)>> {
        let (record, count) = match self.fixed == HEAD_LEN && self.rows & MASKED != 0 {
            true => (&self.unmasked(record)?, self.rows & !MASKED),
            false => (record, self.rows),
        };
        let mut at = self.fixed;
        // Each row takes at least its two lengths, which bounds what a damaged count can reserve.
        let mut rows = Vec::with_capacity((count as usize).min(self.payload / 8));
        for _ in 0..count {
            let key_len = length(record, &mut at)?;
            let value_len = length(record, &mut at)?;
            let key = part(record, &mut at, key_len)?;
            let value = match value_len {
                DELETED => None,
                len => Some(part(record, &mut at, len)?),
            };
            rows.push((key, value));
        }
        (at == record.len()).then_some(rows)
    }

    /// A record with the mask taken out.
    fn unmasked(&self, record: &Bytes) -> Option<Bytes> {
        let (head, payload) = record.split_at_checked(self.fixed)?;
        let (mask, rows) = payload.split_first_chunk::<{ masking::MASK_LEN }>()?;
        let mut out = [head, rows].concat();
        masking::apply(u64::from_le_bytes(*mask), &mut out[self.fixed..]);
        Some(out.into())
    }
}

fn length(record: &Bytes, at: &mut usize) -> Option<u32> {
    let bytes = record.get(*at..*at + 4)?;
    *at += 4;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

fn part(record: &Bytes, at: &mut usize, len: u32) -> Option<Bytes> {
    let end = at.checked_add(len as usize).filter(|end| *end <= record.len())?;
    let part = record.slice(*at..end);
    *at = end;
    Some(part)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

const DELETED: u32 = u32::MAX;
/// Bit of the count of rows: the rows are masked.
const MASKED: u32 = 1 << 31;
/// First bytes of a record.
const MAGIC: [u8; 4] = *b"AKL2";
/// Length of the fixed part in format 1.
pub(crate) const FORMAT_1_HEAD_LEN: usize = 24;
const FORMAT_1_MAGIC: [u8; 4] = *b"AKL1";

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: Salt = Salt([0x5a; 16]);

    #[test]
    fn a_record_reads_back_and_every_flipped_bit_is_noticed() {
        let mut rows = Overlay::new();
        rows.insert(Bytes::from_static(b"\x01key"), Some(Bytes::from_static(b"value")));
        rows.insert(Bytes::from_static(b"\x01gone"), None);
        rows.insert(Bytes::from_static(b"\x02"), Some(Bytes::new()));
        let encoded = encode(SALT, 7, &rows);
        let head = Head::decode(encoded[..HEAD_LEN].try_into().unwrap(), SALT).unwrap();
        assert_eq!((head.sequence, head.stride() as usize), (7, encoded.len()));
        let record = Bytes::copy_from_slice(&encoded[..HEAD_LEN + head.payload]);
        assert!(head.verify(&record));
        assert_eq!(head.rows(&record).unwrap(), rows.into_iter().collect::<Vec<_>>());
        for bit in 64..record.len() * 8 {
            let mut damaged = record.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(!head.verify(&damaged));
        }
        assert!(Head::decode(encoded[..HEAD_LEN].try_into().unwrap(), Salt([0x5b; 16])).is_none());
    }

    #[test]
    fn rows_that_do_not_add_up_are_refused() {
        let rows = Overlay::from([(Bytes::from_static(b"\x01k"), Some(Bytes::from_static(b"v")))]);
        let encoded = encode(SALT, 1, &rows);
        let head = Head::decode(encoded[..HEAD_LEN].try_into().unwrap(), SALT).unwrap();
        for cut in HEAD_LEN..HEAD_LEN + head.payload {
            assert!(head.rows(&Bytes::copy_from_slice(&encoded[..cut])).is_none());
        }
    }
}
