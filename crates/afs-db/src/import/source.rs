//! Where the bytes of a file come from, and why they cannot be imported.

/// The bytes of a file, read where they are needed.
pub trait Source {
    /// How many there are.
    fn size(&self) -> u64;

    /// Fills `into` with the bytes from `offset` on.
    ///
    /// # Errors
    /// They cannot be read, or there are fewer; a line for a person.
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

/// Why nothing of a file can be imported. Offsets are in the file, its header counted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file could not be read.
    #[error("cannot read at offset {offset}: {why}")]
    Read {
        /// Where.
        offset: u64,
        /// Why.
        why: String,
    },
    /// It is not such a file.
    #[error("{what} (at offset {offset})")]
    NotOne {
        /// Where it shows.
        offset: u64,
        /// What is wrong, and what to do.
        what: String,
    },
}

impl ImportError {
    pub(super) fn not_one(offset: u64, what: impl Into<String>) -> Self {
        Self::NotOne { offset, what: what.into() }
    }
}
