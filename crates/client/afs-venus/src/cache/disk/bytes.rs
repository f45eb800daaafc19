//! The bytes of a cache file: as they are, or encrypted. The one place where the two sorts of caches differ in their files.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use ::bytes::Bytes;

use super::holes;
use super::sealed_bytes::SealedBytes;
use crate::cache::Ranges;
use crate::cache::encryption::SectorCipher;

/// The bytes of a file.
pub(super) enum FileBytes {
    Plain(Arc<File>),
    Sealed(Box<SealedBytes>),
}

impl FileBytes {
    pub fn new(file: File, cipher: Option<SectorCipher>) -> io::Result<Self> {
        Ok(match cipher {
            None => Self::Plain(Arc::new(file)),
            Some(cipher) => Self::Sealed(Box::new(SealedBytes::new(file, cipher)?)),
        })
    }

    /// The file on disk, for its times and blocks, and to flush it.
    pub fn on_disk(&self) -> &File {
        match self {
            Self::Plain(file) => file,
            Self::Sealed(sealed) => sealed.on_disk(),
        }
    }

    /// The file, if its bytes are what programs may read and write.
    pub fn shared(&self) -> Option<Arc<File>> {
        match self {
            Self::Plain(file) => Some(file.clone()),
            Self::Sealed(_) => None,
        }
    }

    pub fn read_at(&self, pos: u64, len: usize) -> io::Result<Bytes> {
        match self {
            Self::Plain(file) => read_plain(file, pos, len),
            Self::Sealed(sealed) => sealed.read_at(pos, len),
        }
    }

    /// All of these bytes, if they are in memory.
    pub fn read_now(&self, pos: u64, len: usize) -> Option<Bytes> {
        match self {
            Self::Plain(file) => holes::in_memory(file, pos, len).map(Bytes::from),
            Self::Sealed(sealed) => sealed.read_now(pos, len),
        }
    }

    pub fn write_at(&self, pos: u64, data: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.write_all_at(data, pos),
            Self::Sealed(sealed) => sealed.write_at(pos, data),
        }
    }

    pub fn set_len(&self, len: u64) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.set_len(len),
            Self::Sealed(sealed) => sealed.set_len(len),
        }
    }

    pub fn len(&self) -> io::Result<u64> {
        match self {
            Self::Plain(file) => Ok(file.metadata()?.len()),
            Self::Sealed(sealed) => Ok(sealed.len()),
        }
    }

    pub fn data(&self) -> io::Result<Ranges> {
        match self {
            Self::Plain(file) => holes::data_of(file),
            Self::Sealed(sealed) => sealed.data(),
        }
    }

    pub fn discard(&self, pos: u64, len: u64) -> io::Result<()> {
        match self {
            Self::Plain(file) => holes::punch(file, pos, len),
            Self::Sealed(sealed) => sealed.discard(pos, len),
        }
    }
}

fn read_plain(file: &File, pos: u64, len: usize) -> io::Result<Bytes> {
    let mut out = vec![0; len];
    let mut filled = 0;
    while let Some(rest) = out.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, pos + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    out.truncate(filled);
    Ok(out.into())
}
