//! Tokens on this machine: files in which a user keeps them, and sockets over which mounts get them.
//!
//! `andrew login` writes a file for each cell and hands the token to each mount over that mount's token socket. A mount
//! accepts a token for the user at the other end of the socket, who is identified by the kernel. A mount that starts
//! later begins with the token file of the user who mounts, and with the tokens that its last process had of others.

mod client;
mod error;
pub(crate) mod frame;
mod initial_token;
pub(crate) mod kept;
mod messages;
mod mount_files;
mod mount_properties;
mod mount_tokens;
pub mod properties;
mod renew;
#[cfg(any(test, feature = "fuzzing"))]
mod samples;
mod server;
mod session;
mod socket_paths;
mod store;

pub use client::{HandedOver, HeldByMount, Mounts, Settled, UnsavedAt, home_cells, known_cells};
pub use error::TokenError;
pub use kept::{BadToken, KeptToken};
pub use messages::{CellLocation, HeldToken, MountLocation, Settle, TokenReply, TokenRequest};
pub use mount_properties::MountProperties;
pub use mount_tokens::MountTokens;
pub use renew::{cache_key, change_groups, keep, renew, warning};
pub use server::{TokenHandler, TokenServer};
pub use session::{SessionId, VARIABLE as SESSION_VARIABLE};
pub use socket_paths::{runtime, socket_path};
pub use store::VARIABLE as TOKENS_VARIABLE;
pub use store::{TokenStore, of};
