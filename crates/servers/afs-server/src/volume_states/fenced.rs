//! Mark of a read-write volume that another site has: it is off line, and the reason is in its header.

use afs_volume::VolumeHeader;

/// Beginning of the message of a volume that is fenced.
pub(crate) const FENCED: &str = "fenced: ";

/// Whether a volume is out of service because another site has it.
pub(crate) fn is_fenced(header: &VolumeHeader) -> bool {
    !header.online && header.offline_message.starts_with(FENCED)
}
