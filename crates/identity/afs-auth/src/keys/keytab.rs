//! Keytabs of MIT Kerberos, version 0x502: `rxkad.keytab`, and the output of `kadmin` for the cell's principal.
//!
//! The layout is that of MIT's "Keytab file format" document
//! (<https://web.mit.edu/kerberos/krb5-latest/doc/formats/keytab_file_format.html>).

use afs_wire::xdr::{DecodeError, Reader};

use super::{CellKey, KeyError, KeyKind, KeyRing};
use crate::Secret;

const MAGIC: [u8; 2] = [5, 2];

/// The first component of the cell's principal: `afs@REALM` or `afs/cell@REALM`.
const SERVICE: &[u8] = b"afs";

impl KeyRing {
    /// Reads the keys of `afs@REALM` and `afs/cell@REALM`; those of all other principals are skipped, because a
    /// host's key must not become the cell's. DES keys become [`KeyKind::RxkadDes`].
    ///
    /// # Errors
    /// [`KeyError`] for anything that is not such a file. [`KeyError::Twice`] also when two of the principals have
    /// keys with the same numbers.
    pub fn from_keytab(bytes: &[u8]) -> Result<Self, KeyError> {
        let mut reader = Reader::new(bytes);
        if reader.array::<2>()? != &MAGIC {
            return Err(KeyError::Format("keytab of version 0x502"));
        }
        let mut ring = Self::default();
        while reader.remaining() > 0 {
            if let Some(key) = next(&mut reader)? {
                ring.add(key)?;
            }
        }
        Ok(ring)
    }
}

/// The next record; `None` for the hole of a removed entry, and for other principals.
fn next(reader: &mut Reader<'_>) -> Result<Option<CellKey>, KeyError> {
    let size = reader.i32()?;
    let record = reader.raw(size.unsigned_abs() as usize)?;
    if size > 0 { entry(&mut Reader::new(record)) } else { Ok(None) }
}

fn entry(reader: &mut Reader<'_>) -> Result<Option<CellKey>, KeyError> {
    let components = half(reader)?;
    counted(reader)?;
    let mut ours = matches!(components, 1 | 2);
    for index in 0..components {
        let component = counted(reader)?;
        ours &= index > 0 || component == SERVICE;
    }
    let (_name_type, _timestamp) = (reader.u32()?, reader.u32()?);
    let short_kvno = u32::from(reader.array::<1>()?[0]);
    let enctype = i32::from(half(reader)?.cast_signed());
    let secret = counted(reader)?;
    // Present in newer files, for numbers above 255.
    let kvno = reader.u32().ok().filter(|kvno| *kvno != 0).unwrap_or(short_kvno);
    if !ours {
        return Ok(None);
    }
    let secret = Secret::new(secret.to_vec());
    Ok(Some(match enctype {
        1..=3 => CellKey { kind: KeyKind::RxkadDes, kvno, enctype: 0, secret },
        _ => CellKey { kind: KeyKind::RxkadKrb5, kvno, enctype, secret },
    }))
}

fn half(reader: &mut Reader<'_>) -> Result<u16, DecodeError> {
    reader.array().map(|bytes| u16::from_be_bytes(*bytes))
}

fn counted<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    let len = half(reader)?;
    reader.raw(usize::from(len))
}
