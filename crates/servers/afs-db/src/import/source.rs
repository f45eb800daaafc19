//! Source of a file's bytes, and the errors of an import.

/// Random access to the bytes of a file.
pub trait Source {
    /// Number of bytes.
    fn size(&self) -> u64;

    /// Fills `into` with the bytes from `offset` on.
    ///
    /// # Errors
    /// They cannot be read, or there are fewer; one line for display.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), String>;
}

impl Source for &[u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), String> {
        let from = usize::try_from(offset).ok().and_then(|from| self.get(from..));
        let bytes = from.and_then(|bytes| bytes.get(..into.len())).ok_or("the file ends before")?;
        into.copy_from_slice(bytes);
        Ok(())
    }
}

/// Why nothing of a file can be imported. Positions are in the file, its header included.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file could not be read.
    #[error("cannot read at offset {offset}: {why}")]
    Read {
        /// The position.
        offset: u64,
        /// The error.
        why: String,
    },
    /// Not a file of this kind.
    #[error("{what} (at offset {offset})")]
    NotOne {
        /// The position that shows it.
        offset: u64,
        /// The error, and what to do.
        what: String,
    },
}

impl ImportError {
    pub(super) fn not_one(offset: u64, what: impl Into<String>) -> Self {
        Self::NotOne { offset, what: what.into() }
    }
}
