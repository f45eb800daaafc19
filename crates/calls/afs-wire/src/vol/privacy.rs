//! What a volume withholds beyond its access lists: directories whose past is closed, and directories whose mode closes them.

use super::Modes;
use crate::ids::{Uniquifier, UnixSeconds, VnodeId};
use crate::xdr::BoundedVec;

/// Most directories of a volume whose past is closed.
pub const CLOSED_MAX: usize = 64;

/// The directories of a volume whose past is closed.
pub type ClosedPasts = BoundedVec<ClosedPast, CLOSED_MAX>;

xdr_struct! {
    /// A directory of which snapshots, backups and clones show nothing, nor of what was below it, if they were made by a time.
    #[derive(Copy)]
    pub struct ClosedPast {
        /// Its vnode number.
        pub vnode: VnodeId,
        /// Its uniquifier.
        pub unique: Uniquifier,
        /// The creation time of the newest state that is closed.
        pub until: UnixSeconds,
    }
}

xdr_struct! {
    /// The settings of a volume for its privacy.
    #[derive(Default)]
    pub struct Privacy {
        /// Whether modes close directories.
        pub modes: Modes,
        /// The directories whose past is closed.
        pub closed: ClosedPasts,
    }
}
