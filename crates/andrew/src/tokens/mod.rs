//! Tokens on this machine: the files a user keeps them in, and how running mounts get them.
//!
//! `andrew login` writes a file for each cell and hands the token to each mount over that mount's token socket. A mount
//! takes a token for the user at the other end of the socket, whom the kernel names.

mod connections;
mod desk;
pub(crate) mod frame;
mod handing;
pub(crate) mod kept;
mod places;
mod renew;
#[cfg(any(test, feature = "fuzzing"))]
mod samples;
mod server;
mod session;
mod store;

pub use desk::TokenDesk;
pub use frame::{CellPlace, HeldToken, MountPlace, TokenAnswer, TokenQuestion};
pub use handing::{Mounts, cell_places};
pub use kept::KeptToken;
pub(crate) use places::runtime;
pub use places::socket_path;
pub use renew::{keep, renew, warning};
pub use server::{TokenHandler, TokenServer};
pub use session::SessionId;
pub(crate) use session::VARIABLE as SESSION_VARIABLE;
pub(crate) use store::VARIABLE as TOKENS_VARIABLE;
pub use store::{TokenStore, of};
