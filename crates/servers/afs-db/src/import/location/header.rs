//! The header of `vldb.DB0`.

use crate::import::finding::Findings;
use crate::import::image::{Image, UBIK_HEADER_LEN};
use crate::import::source::ImportError;

/// Buckets of a hash table.
pub(super) const BUCKETS: usize = 8191;
/// Words of the server table.
pub(super) const SERVER_WORDS: usize = 255;

/// The fields of the header.
pub(super) struct Header {
    /// 2, 3 or 4.
    pub(super) version: u32,
    /// First address after the entries.
    pub(super) end: u32,
    pub(super) next_volume_id: u32,
    pub(super) servers: Vec<u32>,
    pub(super) by_name: Vec<u32>,
    pub(super) by_id: [Vec<u32>; 3],
    /// The first extension block, or 0.
    pub(super) extension: u32,
}

impl Header {
    pub(super) fn read(image: &Image<'_>, findings: &mut Findings) -> Result<Self, ImportError> {
        if image.len() < u64::from(LEN) {
            let offset = UBIK_HEADER_LEN + image.len();
            return Err(ImportError::not_one(offset, "the file is too short for a location database"));
        }
        let version = image.word(0)?;
        if !(2..=4).contains(&version) || image.word(4)? != LEN {
            return Err(ImportError::not_one(
                UBIK_HEADER_LEN,
                format!("this is no location database of version 2, 3 or 4 (it says {version})"),
            ));
        }
        let id_table = |kind: usize| image.words(id_table_at(kind), BUCKETS);
        Ok(Header {
            version,
            end: end(image, findings)?,
            next_volume_id: image.word(24)?,
            servers: image.words(SERVERS_AT, SERVER_WORDS)?,
            by_name: image.words(BY_NAME_AT, BUCKETS)?,
            by_id: [id_table(0)?, id_table(1)?, id_table(2)?],
            extension: image.word(EXTENSION_AT)?,
        })
    }
}

/// Address of the hash table for ids of one kind.
pub(super) fn id_table_at(kind: usize) -> u32 {
    BY_ID_AT + (kind * 4 * BUCKETS) as u32
}

/// End of the entries, as far as the file goes.
fn end(image: &Image<'_>, findings: &mut Findings) -> Result<u32, ImportError> {
    let said = image.word(12)?;
    let there = u32::try_from(image.len()).unwrap_or(u32::MAX);
    // An empty database has no entries and may never have recorded their end.
    let said = if said == 0 { LEN } else { said };
    if said < LEN || said > there {
        let lost = if said > there { "the file is cut short" } else { "that is inside the header" };
        findings.damage(
            12,
            format!("the entries should end at address {said}, but {lost}; read to the end of the file"),
        );
        return Ok(there);
    }
    Ok(said)
}

/// Length of the header, which is the address of the first entry.
pub(super) const LEN: u32 = 132_120;
const SERVERS_AT: u32 = 40;
pub(super) const BY_NAME_AT: u32 = 1060;
const BY_ID_AT: u32 = 33_824;
const EXTENSION_AT: u32 = 132_116;
