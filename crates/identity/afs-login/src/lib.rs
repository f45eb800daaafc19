//! Login without Kerberos: a passphrase or an SSH key is exchanged for a token that every server of the cell accepts.
//!
//! Both ends of the cell's login service: [`LoginServer`] serves its calls over stores that are passed in, and the
//! functions of [`client`] make them over any connection. Nothing here reads a clock, a file or a random generator,
//! and no passphrase or key ever leaves the client. Source: `docs/protocol/login.md`.

pub mod client;
mod crypto;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod grant;
mod handover;
mod host_key;
mod protocol;
mod secret;
mod server;
mod ssh;
pub mod ssh_agent;
mod user;

pub use grant::{BadGrant, Grant};
pub use handover::{KeyReceiver, seal_keys};
pub use host_key::HostKey;
pub use secret::{BadLoginSecret, LoginSecret};
pub use server::{
    KeyMint, Lifetimes, LoginConfig, LoginServer, LoginStore, Mint, Recorder, StoreError, User, Users,
};
pub use ssh::{BadUserKey, Signer, UserKey};
pub use user::{BadUserName, UserName};
