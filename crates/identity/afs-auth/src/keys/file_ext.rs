//! OpenAFS's `KeyFileExt`: all other keys of a cell; also the format in which Andrew stores its own.

use afs_wire::xdr::{DecodeError, Reader};

use super::{CellKey, KeyError, KeyKind, KeyRing};
use crate::Secret;

/// Bytes of a record between its own length and the key's length: kind, number, subtype, and the key's length.
const META_LEN: u32 = 16;

/// Longest such header: fields appended by a later version are skipped.
const META_LEN_MAX: u32 = 256;

impl KeyRing {
    /// Reads a `KeyFileExt`. Records of unknown kinds are skipped, as OpenAFS does.
    ///
    /// # Errors
    /// [`KeyError`] for anything that is not such a file, or is longer than its records.
    pub fn from_key_file_ext(bytes: &[u8]) -> Result<Self, KeyError> {
        let mut reader = Reader::new(bytes);
        let count = reader.u32()?;
        if count as usize > Self::KEYS_MAX {
            return Err(KeyError::Format("KeyFileExt"));
        }
        let mut ring = Self::default();
        for _ in 0..count {
            if let Some(key) = record(&mut reader)? {
                ring.add(key)?;
            }
        }
        match reader.remaining() {
            0 => Ok(ring),
            left => Err(DecodeError::Trailing { left }.into()),
        }
    }

    /// Writes a `KeyFileExt` that OpenAFS can read, without the coming keys. The bytes are as secret as the keys.
    #[must_use]
    pub fn to_key_file_ext(&self) -> Secret {
        let lens = self.iter().map(|key| 20 + key.secret.expose().len());
        // Capacity for everything at once: growing would leave copies of keys behind.
        let mut out = Vec::with_capacity(4 + lens.sum::<usize>());
        out.extend(word(self.iter().count()));
        for key in self.iter() {
            out.extend(META_LEN.to_be_bytes());
            out.extend(key.kind.number().to_be_bytes());
            out.extend(key.kvno.to_be_bytes());
            out.extend(key.enctype.to_be_bytes());
            out.extend(word(key.secret.expose().len()));
            out.extend(key.secret.expose());
        }
        Secret::new(out)
    }
}

fn word(count: usize) -> [u8; 4] {
    u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes()
}

fn record(reader: &mut Reader<'_>) -> Result<Option<CellKey>, KeyError> {
    let meta_len = reader.u32()?;
    if !(META_LEN..=META_LEN_MAX).contains(&meta_len) {
        return Err(KeyError::Format("KeyFileExt"));
    }
    let (kind, kvno, enctype, key_len) =
        (reader.u32()?, reader.u32()?, reader.i32()?, reader.u32()? as usize);
    reader.raw((meta_len - META_LEN) as usize)?;
    if key_len > KeyRing::KEY_LEN_MAX {
        return Err(KeyError::Length(key_len));
    }
    let secret = Secret::new(reader.raw(key_len)?.to_vec());
    Ok(KeyKind::from_number(kind).map(|kind| CellKey { kind, kvno, enctype, secret }))
}
