//! Security class rxkad: index 2 (`docs/protocol/rxkad.md`).
//!
//! A client authenticates with a Kerberos ticket; its session key then marks the header of each packet, and at a
//! higher level seals the packet's first eight bytes or all of it. The cipher has keys of 56 bits, and at the lowest
//! level the server is not authenticated to the client. It is here because every deployed cell uses it.

pub mod cipher;
mod client;
mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod handshake;
mod mint;
mod packets;
mod server;
mod session_key;
pub mod ticket;
mod token;

pub use error::RxkadError;
pub use mint::{Minting, local_token, mint};
pub use server::{RxkadLimits, RxkadServer};
pub use session_key::SessionKey;
pub use ticket::TicketFormat;
pub use token::RxkadToken;

/// The security index of rxkad.
pub const INDEX: u8 = 2;
