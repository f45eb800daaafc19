//! The file service (RXAFS), which file servers offer on UDP port 7000.
//!
//! Source: `docs/protocol/fileserver.md`.

mod bulk;
mod calls;
mod capability_secret;
mod change_list;
mod command;
mod data;
mod drive_capability;
mod extension;
mod layout;
mod lease;
mod listed_parts;
mod lock;
mod object_address;
mod opcodes;
mod promise;
mod room;
mod set_status;
mod statistics;
mod status;
mod volume;

pub use bulk::{BulkStatus, BulkStatusReply, Fids, GiveUpCallBacks, InlineBulkStatus, Promises, Statuses};
pub use calls::*;
pub use capability_secret::CapabilitySecret;
pub use change_list::*;
pub use command::*;
pub use data::*;
pub use drive_capability::*;
pub use extension::*;
pub use layout::*;
pub use lease::*;
pub use listed_parts::{LISTED_BYTES_MAX, ListedChunk, ListedCopy, ListedPart, ListedParts};
pub use lock::*;
pub use object_address::{OBJECT_ADDRESS_MAX, ObjectAddress};
pub use opcodes::OPCODES;
pub use promise::{CallBack, CallBackKind, VolSync};
pub use room::*;
pub use set_status::SetStatus;
pub use statistics::*;
pub use status::{FileKind, Status};
pub use volume::*;

use crate::rpc::ServiceId;
use crate::xdr::{BoundedVec, ByteString};

const SERVICE: ServiceId = ServiceId::FILE;

/// UDP port of file servers, by convention.
pub const PORT: u16 = 7000;
/// Longest name of a directory entry or volume in a call, in bytes.
pub const NAME_MAX: usize = 256;
/// Longest link text in a call, in bytes.
pub const PATH_MAX: usize = 1024;
/// Longest access list in a call, in bytes.
pub const OPAQUE_MAX: usize = 1024;
/// Most fids in one call.
pub const FIDS_MAX: usize = 50;
/// Most words in a capability list.
pub const CAPABILITIES_MAX: usize = 196;
/// Most words of extended statistics from a file server.
pub const XSTATS_MAX: usize = 1024;

/// A name in a directory: raw bytes.
pub type Name = ByteString<NAME_MAX>;
/// A link's text, or one of a volume's messages: raw bytes.
pub type PathText = ByteString<PATH_MAX>;
/// An access list in its text form; see [`crate::acl`].
pub type AclText = ByteString<OPAQUE_MAX>;

/// Capabilities of a file server or a client, as words of bits; see [`capability`].
pub type Capabilities = BoundedVec<u32, CAPABILITIES_MAX>;

/// Bits of the first word of [`Capabilities`] (`docs/protocol/fileserver.md` "3. Opcodes"); there is no other word.
pub mod capability {
    /// Understands "UAE" error codes. The only bit that clients of other implementations send.
    pub const ERROR_TRANSLATION: u32 = 0x1;
    /// Of Andrew's clients: drops the rights of its users when [`Fid::RIGHTS`](crate::ids::Fid::RIGHTS) is broken
    /// (`docs/protocol/extensions.md` "Rights that last as long as promises").
    pub const RIGHTS_BREAKS: u32 = 0x4000_0000;
    /// Files may be longer than 2 GiB.
    pub const LARGE_FILES: u32 = 0x2;
    /// Write locks need the `w` right, read locks `k`.
    pub const WRITE_LOCK_ACL: u32 = 0x4;
    /// The administer right on files is computed like any other.
    pub const SANE_ACLS: u32 = 0x8;
    /// Of Andrew's servers: times of files have nanoseconds (`docs/protocol/extensions.md` "Times"). In the first word, since Linux's
    /// client fails a mount for a second one.
    pub const FINE_TIMES: u32 = 0x2000_0000;
}

/// Every decoder of the service, for fuzz targets.
#[cfg(feature = "fuzzing")]
pub(crate) const DECODERS: &[&[crate::decoders::Decoders]] = &[
    bulk::DECODERS,
    calls::DECODERS,
    change_list::DECODERS,
    command::DECODERS,
    data::DECODERS,
    drive_capability::DECODERS,
    extension::DECODERS,
    layout::DECODERS,
    lease::DECODERS,
    lock::DECODERS,
    room::DECODERS,
    statistics::DECODERS,
    volume::DECODERS,
];
