//! The callback service (RXAFSCB), which cache managers offer to file servers, normally on UDP port 7001.
//!
//! Source: `docs/protocol/callback.md`.

mod calls;
mod debug;
mod interfaces;
mod opcodes;

pub use calls::*;
pub use debug::*;
pub use interfaces::{INTERFACES_MAX, Interface, InterfaceAddr};
pub use opcodes::OPCODES;

use crate::rpc::ServiceId;

const SERVICE: ServiceId = ServiceId::CALLBACK;

/// UDP port of cache managers, by convention. File servers call back to whatever port a client's calls come from.
pub const PORT: u16 = 7001;

/// Whole-volume breaks and every other break of one call: at most this many fids.
pub const FIDS_MAX: usize = crate::fs::FIDS_MAX;

/// Every decoder of the service, for fuzz targets.
#[cfg(feature = "fuzzing")]
pub(crate) const DECODERS: &[&[crate::decoders::Decoders]] = &[calls::DECODERS, debug::DECODERS];
