//! The overseer service (BOZO, of the basic overseer server), which reports the servers of a host; UDP port 7007.
//!
//! Source: `docs/protocol/operations.md` "2. bosserver".

mod cell;
mod host;
mod instance;
mod keys;
mod opcodes;
mod status;
mod time;

pub use cell::*;
pub use host::*;
pub use instance::*;
pub use keys::*;
pub use opcodes::OPCODES;
pub use status::{InstanceStatus, RunState, status_flags};
pub use time::{RestartKind, RestartTime, time_mask};

use crate::rpc::ServiceId;
use crate::xdr::ByteString;

const SERVICE: ServiceId = ServiceId::OVERSEER;

/// UDP port of overseers.
pub const PORT: u16 = 7007;

/// A name, a path, a command or a message.
pub type Text = ByteString<256>;

/// Every decoder of the service, for fuzz targets.
#[cfg(feature = "fuzzing")]
pub(crate) const DECODERS: &[&[crate::decoders::Decoders]] =
    &[cell::DECODERS, host::DECODERS, instance::DECODERS, keys::DECODERS];
