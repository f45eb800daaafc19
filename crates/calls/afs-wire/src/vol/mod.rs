//! The volume service (AFSVolServer): creation, listing, copying and removal of volumes; UDP port 7005.
//!
//! Source: `docs/protocol/volserver.md`.

#[macro_use]
mod setting;

mod dump;
mod extension;
mod info;
mod lending;
mod list;
mod modes;
mod opcodes;
mod partition;
mod placement;
mod privacy;
mod route;
mod transaction;
mod volume;
mod xinfo;

pub use dump::*;
pub use extension::*;
pub use info::{DESTROY_ME, InfoStatus, VolumeInfo};
pub use lending::Lending;
pub use list::*;
pub use modes::Modes;
pub use opcodes::OPCODES;
pub use partition::*;
pub use placement::{DriveCount, Placement};
pub use privacy::{CLOSED_MAX, ClosedPast, ClosedPasts, Privacy};
pub use route::DataRoute;
pub use transaction::*;
pub use volume::*;
pub use xinfo::VolumeXInfo;

use crate::rpc::ServiceId;
use crate::xdr::{ByteString, Chars};

const SERVICE: ServiceId = ServiceId::VOLUME;

/// UDP port of volume servers.
pub const PORT: u16 = 7005;

/// A volume's name as an argument. Names over 31 bytes are refused by the service, not by the decoder.
pub type NameText = ByteString<32>;
/// A volume's name inside a structure: 32 words.
pub type NameChars = Chars<32>;

/// Every decoder of the service, for fuzz targets.
#[cfg(feature = "fuzzing")]
pub(crate) const DECODERS: &[&[crate::decoders::Decoders]] = &[
    dump::DECODERS,
    extension::DECODERS,
    list::DECODERS,
    partition::DECODERS,
    transaction::DECODERS,
    volume::DECODERS,
];
