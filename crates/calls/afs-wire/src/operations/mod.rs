//! The journal of operations on volumes: a service of Andrew, beside the location service on UDP port 7003.
//!
//! Only administrators may call it. Source: `docs/protocol/operations-journal.md`.

mod calls;
mod fields;
mod opcodes;

pub use calls::*;
pub use fields::*;
pub use opcodes::OPCODES;

use crate::rpc::ServiceId;

const SERVICE: ServiceId = ServiceId::OPERATIONS;

/// Every decoder of the service, for fuzz targets.
#[cfg(feature = "fuzzing")]
pub(crate) const DECODERS: &[&[crate::decoders::Decoders]] = &[calls::DECODERS];
