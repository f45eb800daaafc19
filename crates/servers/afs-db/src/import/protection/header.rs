//! The header of `prdb.DB0`.

use afs_wire::ids::ViceId;

use crate::import::finding::Findings;
use crate::import::image::{Image, UBIK_HEADER_LEN};
use crate::import::source::ImportError;

/// Buckets of a hash table.
pub(super) const BUCKETS: usize = 8191;
/// Length of the header, which is the address of the first slot.
pub(super) const LEN: u32 = 65_600;
/// Addresses of the hash tables.
pub(super) const BY_NAME_AT: u32 = 72;
pub(super) const BY_ID_AT: u32 = 32_836;

/// The fields of the header.
pub(super) struct Header {
    /// First address after the slots.
    pub(super) end: u32,
    pub(super) max_user: ViceId,
    pub(super) max_group: ViceId,
    pub(super) by_name: Vec<u32>,
    pub(super) by_id: Vec<u32>,
}

impl Header {
    pub(super) fn read(image: &Image<'_>, findings: &mut Findings) -> Result<Self, ImportError> {
        if image.len() < u64::from(LEN) {
            let offset = UBIK_HEADER_LEN + image.len();
            return Err(ImportError::not_one(offset, "the file is too short for a protection database"));
        }
        let words = image.words(0, 6)?;
        let &[version, len, _, said_end, max_group, max_user] = words.as_slice() else {
            return Err(ImportError::not_one(UBIK_HEADER_LEN, "this is no protection database"));
        };
        if version != 0 || len != LEN {
            return Err(ImportError::not_one(UBIK_HEADER_LEN, "this is no protection database of version 0"));
        }
        Ok(Header {
            end: end(image, said_end, findings),
            max_user: ViceId(max_user as i32),
            max_group: ViceId(max_group as i32),
            by_name: image.words(BY_NAME_AT, BUCKETS)?,
            by_id: image.words(BY_ID_AT, BUCKETS)?,
        })
    }
}

/// End of the slots, as far as the file goes.
fn end(image: &Image<'_>, said: u32, findings: &mut Findings) -> u32 {
    let there = u32::try_from(image.len()).unwrap_or(u32::MAX);
    let said = if said == 0 { LEN } else { said };
    if said < LEN || said > there {
        let lost = if said > there { "the file is cut short" } else { "that is inside the header" };
        findings.damage(
            12,
            format!("the entries should end at address {said}, but {lost}; read to the end of the file"),
        );
        return there;
    }
    said
}
