//! The protection service (PR): users, groups and memberships; UDP port 7002.
//!
//! Source: `docs/protocol/ptserver.md`.

mod calls;
mod entry;
mod lists;
mod opcodes;
mod repair;

pub use calls::*;
pub use entry::{Entry, EntryKind, EntryUpdate, update_mask};
pub use lists::*;
pub use opcodes::OPCODES;
pub use repair::*;

use crate::rpc::ServiceId;
use crate::xdr::{ByteString, Chars};

const SERVICE: ServiceId = ServiceId::PROTECTION;

/// UDP port of protection servers.
pub const PORT: u16 = 7002;

/// Characters of a name, its NUL included.
pub const NAME_WORDS: usize = 64;
/// A name as an argument of its own: a counted string.
pub type NameText = ByteString<NAME_WORDS>;
/// A name inside a list or a structure: 64 words, one character each.
pub type NameChars = Chars<NAME_WORDS>;

/// Every decoder of the service, for fuzz targets.
#[cfg(feature = "fuzzing")]
pub(crate) const DECODERS: &[&[crate::decoders::Decoders]] =
    &[calls::DECODERS, lists::DECODERS, repair::DECODERS];
