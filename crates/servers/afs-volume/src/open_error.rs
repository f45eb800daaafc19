//! Why a store cannot be opened.

use afs_kv::KvError;

use crate::error::VolumeError;

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Written by a newer version of this program, or by another program.
    #[error(
        "the volume store has format {found}; this program reads formats 1 to {newest}. Nothing was changed: use the version that wrote it"
    )]
    Format {
        /// The format found.
        found: u32,
        /// The newest format that this program knows.
        newest: u32,
    },
    /// Reading failed, or the data is damaged.
    #[error(transparent)]
    Volume(#[from] VolumeError),
}

impl From<KvError> for OpenError {
    fn from(error: KvError) -> Self {
        Self::Volume(error.into())
    }
}
