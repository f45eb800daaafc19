//! Errors of a restore.

use afs_wire::dump::DumpError;
use afs_wire::error::AbortCode;
use afs_wire::ids::VnodeId;

use crate::error::VolumeError;

/// Why a dump was not restored. Nothing of it is kept.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The stream is no dump, is damaged, or is truncated.
    #[error(transparent)]
    Dump(#[from] DumpError),
    /// A vnode of the dump is invalid.
    #[error("vnode {vnode} of the dump, which begins near byte {offset}: {what}")]
    Vnode {
        /// The vnode.
        vnode: VnodeId,
        /// Position in the stream of the end of its record.
        offset: u64,
        /// The error.
        what: String,
    },
    /// The volume store refused or failed.
    #[error(transparent)]
    Volume(#[from] VolumeError),
}

impl RestoreError {
    /// The code in a volume server's reply.
    pub fn code(&self) -> AbortCode {
        match self {
            Self::Dump(_) | Self::Vnode { .. } => AbortCode::VOLSERREAD_DUMPERROR,
            Self::Volume(error) => error.code(),
        }
    }
}
