//! OpenAFS's `KeyFile`: the DES keys of a cell.

use afs_wire::xdr::Reader;

use super::{CellKey, KeyError, KeyKind, KeyRing};
use crate::Secret;

/// Most keys in a `KeyFile`.
const KEYS_MAX: u32 = 8;

impl KeyRing {
    /// Reads OpenAFS's `KeyFile`: a count, and for each key its number and eight bytes. Old files have unused space
    /// after the last key, which is ignored.
    ///
    /// # Errors
    /// [`KeyError`] for anything that is not such a file.
    pub fn from_key_file(bytes: &[u8]) -> Result<Self, KeyError> {
        let mut reader = Reader::new(bytes);
        let count = reader.u32()?;
        if count > KEYS_MAX {
            return Err(KeyError::Format("KeyFile"));
        }
        let mut ring = Self::default();
        for _ in 0..count {
            ring.add(record(&mut reader)?)?;
        }
        Ok(ring)
    }
}

fn record(reader: &mut Reader<'_>) -> Result<CellKey, KeyError> {
    let kvno = reader.u32()?;
    let secret = Secret::new(reader.array::<8>()?.to_vec());
    Ok(CellKey { kind: KeyKind::RxkadDes, kvno, enctype: 0, secret })
}
