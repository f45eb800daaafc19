//! The cell's login service: an extension of Andrew, beside the protection service on UDP port 7002.
//!
//! Source: `docs/protocol/login.md`.

mod calls;
mod fields;
mod opcodes;

pub use calls::*;
pub use fields::*;
pub use opcodes::OPCODES;

use crate::rpc::ServiceId;

const SERVICE: ServiceId = ServiceId::LOGIN;

/// The version of the protocol of these types.
pub const VERSION: u32 = 1;

/// Every decoder of the service, for fuzz targets.
#[cfg(feature = "fuzzing")]
pub(crate) const DECODERS: &[&[crate::decoders::Decoders]] = &[calls::DECODERS];
