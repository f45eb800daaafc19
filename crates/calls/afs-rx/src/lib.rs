//! Rx, the transport of AFS-3, as a pure state machine.
//!
//! An [`Endpoint`] is the Rx of one UDP socket: any number of client and server connections. It has no socket, clock,
//! thread or randomness of its own. Four kinds of method:
//!
//! - getters take `&self`;
//! - `handle_*` report datagrams, errors of the network, and time;
//! - commands (`connect`, `open_call`, `write`, `read`, ...) come from the application;
//! - `poll_*` return what to do next.
//!
//! The contract with a driver: change something (`handle_*` for a whole batch of datagrams, or commands), then poll
//! `poll_event` and `poll_transmit` until both are empty, then sleep until `poll_timeout` or the next datagram.
//! Acknowledgements are made when `poll_transmit` runs, so a batch costs one for each call.
//!
//! The ciphers of a connection need the connection's security object alone. A driver that shares the endpoint between
//! threads runs them outside its lock: `begin_read`, `Sealed::open`, `end_read` for received packets, `poll_output`,
//! `Sealing::next`, `end_sealing` for sent ones. `read` and `poll_transmit` are the same in one step.
//!
//! Source of the rules: docs/protocol/rx.md, cited by heading.

mod call;
mod config;
mod congestion;
mod connection;
mod endpoint;
mod error;
mod event;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod hash;
mod ids;
pub mod packet;
mod path_size;
mod peer;
mod rtt;
mod security;
mod slab;
mod stats;
mod timer;

pub use afs_env::Instant;
pub use config::Config;
pub use endpoint::{
    CallInfo, ConnectionInfo, Endpoint, Opened, Output, ReadStart, Sealed, Sealing, ServiceOptions, Transmit,
    Turn,
};
pub use error::{CallError, ListenError, OpenError, code};
pub use event::{Event, Read};
pub use ids::{CHANNELS, CallId, Cid, ConnId, Epoch, Side};
pub use security::{
    Challenge, ClientSecurity, Identity, NullClient, NullServer, Overhead, PacketContext, PacketSecurity,
    Proof, Response, SecurityError, SecurityReport, ServerSecurity, ServerSession, Verified,
};
pub use stats::{DropReason, Holdings, Stats};
