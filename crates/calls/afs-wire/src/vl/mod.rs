//! The volume location service (VL): the sites of volumes; UDP port 7003.
//!
//! Source: `docs/protocol/vldb.md`.

mod addresses;
mod calls;
mod entry;
mod flags;
mod list;
mod opcodes;
mod statistics;
mod update;
mod uuid_entry;

pub use addresses::*;
pub use calls::*;
pub use entry::{Entry, OLD_SITES_MAX, OldEntry, SITES_MAX, Site};
pub use flags::{EntryFlags, LockOperation, ReleaseType, SiteFlags};
pub use list::*;
pub use opcodes::OPCODES;
pub use statistics::*;
pub use update::{EntryUpdate, SiteUpdate, UPDATE_SITES_MAX, site_update};
pub use uuid_entry::{UuidEntry, UuidSite};

use crate::rpc::ServiceId;
use crate::xdr::{ByteString, Chars};

const SERVICE: ServiceId = ServiceId::LOCATION;

/// UDP port of location servers.
pub const PORT: u16 = 7003;

/// A volume's name as an argument: a counted string.
pub type NameText = ByteString<65>;
/// A volume's name inside an entry: 65 words.
pub type NameChars = Chars<65>;

/// Every decoder of the service, for fuzz targets.
#[cfg(feature = "fuzzing")]
pub(crate) const DECODERS: &[&[crate::decoders::Decoders]] =
    &[addresses::DECODERS, calls::DECODERS, list::DECODERS, statistics::DECODERS];
