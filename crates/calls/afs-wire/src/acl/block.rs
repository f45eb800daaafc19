//! Access lists in dumps: a block of 192 bytes. Source: `docs/protocol/dump.md` "4. ACL block (192 bytes)".

use super::{Acl, ENTRIES_MAX};
use crate::ids::{Rights, ViceId};
use crate::xdr::{Decode, DecodeError, Encode, Reader};

/// Bytes of the block.
pub const BLOCK_LEN: usize = 192;

const HEADER_LEN: u32 = 20;
const VERSION: u32 = 1;

/// Why a block is not a valid access list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadBlock {
    /// Its version is not 1.
    #[error("the access list has version {0}, not 1")]
    Version(u32),
    /// Its counts contradict each other or its size.
    #[error("the access list's counts make no sense")]
    Counts,
}

impl Acl {
    /// Encodes the block. Entries over [`ENTRIES_MAX`] are left out; lists made by [`Acl::new`] have none.
    pub fn to_block(&self) -> [u8; BLOCK_LEN] {
        let positive = self.positive.iter().take(ENTRIES_MAX);
        let negative = self.negative.iter().take(ENTRIES_MAX - positive.len());
        let (p, n) = (positive.len() as u32, negative.len() as u32);
        let mut bytes = Vec::with_capacity(BLOCK_LEN);
        [HEADER_LEN + 8 * (p + n), VERSION, p + n, p, n].encode(&mut bytes);
        // Negative entries grow down from the end of the used part.
        for (id, rights) in positive.chain(negative.rev()) {
            id.encode(&mut bytes);
            rights.encode(&mut bytes);
        }
        let mut block = [0; BLOCK_LEN];
        for (to, byte) in block.iter_mut().zip(bytes) {
            *to = byte;
        }
        block
    }

    /// Decodes a block. Bytes after the last entry are ignored.
    ///
    /// # Errors
    /// [`BadBlock`].
    pub fn from_block(block: &[u8; BLOCK_LEN]) -> Result<Self, BadBlock> {
        parse(block).unwrap_or(Err(BadBlock::Counts))
    }
}

fn parse(block: &[u8; BLOCK_LEN]) -> Result<Result<Acl, BadBlock>, DecodeError> {
    let mut reader = Reader::new(block);
    let [size, version, total, p, n] = <[u32; 5]>::decode(&mut reader)?;
    if version != VERSION {
        return Ok(Err(BadBlock::Version(version)));
    }
    let sound =
        total as usize <= ENTRIES_MAX && p.checked_add(n) == Some(total) && size >= HEADER_LEN + 8 * total;
    if !sound {
        return Ok(Err(BadBlock::Counts));
    }
    let mut entries = Vec::with_capacity(total as usize);
    for _ in 0..total {
        entries.push((ViceId::decode(&mut reader)?, Rights::decode(&mut reader)?));
    }
    let negative = entries.split_off(p as usize);
    Ok(Acl::new(entries, negative).map_err(|_| BadBlock::Counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_a_new_volume() {
        let block = Acl::of_new_volume().to_block();
        let words: Vec<i32> = block.chunks(4).map(|w| i32::from_be_bytes(w.try_into().unwrap())).collect();
        assert_eq!(words[..8], [28, 1, 1, 1, 0, -204, 127, 0]);
        assert_eq!(Acl::from_block(&block), Ok(Acl::of_new_volume()));
    }

    #[test]
    fn negative_entries_stand_in_reverse() {
        let acl = Acl::new(
            vec![(ViceId(3), Rights::READ)],
            vec![(ViceId(1), Rights::READ), (ViceId(2), Rights::WRITE)],
        )
        .unwrap();
        let block = acl.to_block();
        assert_eq!(block[28..32], [0, 0, 0, 2], "the last negative entry comes first");
        assert_eq!(Acl::from_block(&block), Ok(acl));
    }

    #[test]
    fn contradictions_are_refused() {
        for (at, value) in [(0, 27), (4, 2), (8, 21), (12, 2), (16, 1), (16, u32::MAX)] {
            let mut block = Acl::of_new_volume().to_block();
            block[at..at + 4].copy_from_slice(&value.to_be_bytes());
            assert!(Acl::from_block(&block).is_err(), "{at}: {value}");
        }
        assert!(Acl::from_block(&[0xff; BLOCK_LEN]).is_err());
    }
}
