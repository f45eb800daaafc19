//! Why a dump was not restored.

use afs_wire::dump::DumpError;
use afs_wire::error::AbortCode;
use afs_wire::ids::VnodeId;

use crate::error::VolumeError;

/// Why a dump was not restored. Nothing of it stays.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The stream is no dump, is damaged, or is cut.
    #[error(transparent)]
    Dump(#[from] DumpError),
    /// A vnode of the dump cannot be.
    #[error("vnode {vnode} of the dump, which begins near byte {offset}: {what}")]
    Vnode {
        /// Which vnode.
        vnode: VnodeId,
        /// Where in the stream its record ends.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// The volume cannot take it.
    #[error(transparent)]
    Volume(#[from] VolumeError),
}

impl RestoreError {
    /// The code that a volume server answers.
    pub fn code(&self) -> AbortCode {
        match self {
            Self::Dump(_) | Self::Vnode { .. } => AbortCode::VOLSERREAD_DUMPERROR,
            Self::Volume(error) => error.code(),
        }
    }
}
