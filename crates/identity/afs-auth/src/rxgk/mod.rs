//! Security class rxgk: index 4, and 6 for Linux's variant (`docs/protocol/rxgk.md`).
//!
//! A token is a key (K0) and, sealed with the cell's key, the same key with a name and a level. Client and server
//! derive transport keys from K0 for each connection; the client's response to the server's challenge proves that it
//! knows K0. [`RxgkToken`] creates client sessions, [`RxgkServer`] server sessions. The other types are their
//! components.

mod auth_name;
mod authenticator;
mod callback;
mod client;
pub mod code;
mod key_chain;
mod lifetime;
mod local_token;
mod mint;
mod packet;
mod packet_protection;
mod person;
mod pseudo_header;
mod response;
mod sealed_token;
mod server;
mod session;
mod source;
mod suspended;
mod time;
mod token;
mod token_contents;
mod transport;
mod variant;
mod wire;

pub use auth_name::AuthName;
pub use authenticator::{Authenticator, NONCE_LEN};
pub use callback::CallbackOffer;
pub use lifetime::Lifetime;
pub use local_token::{local_token, local_tokens};
pub use mint::{MintError, Minting, mint};
pub use packet::{AuthKeys, CryptKeys, PacketKeys};
pub use response::Response;
pub use sealed_token::{open_token, seal_token};
pub use server::RxgkServer;
pub use time::RxgkTime;
pub use token::RxgkToken;
pub use token_contents::TokenContents;
pub use transport::{ConnectionSeed, MasterKey};
pub use variant::Variant;

/// Key usage numbers: `docs/protocol/rxgk.md` "2. Constants".
pub(crate) mod usage {
    pub(crate) const CLIENT_ENC_PACKET: u32 = 1026;
    pub(crate) const CLIENT_MIC_PACKET: u32 = 1027;
    pub(crate) const SERVER_ENC_PACKET: u32 = 1028;
    pub(crate) const SERVER_MIC_PACKET: u32 = 1029;
    pub(crate) const CLIENT_ENC_RESPONSE: u32 = 1030;
    pub(crate) const SERVER_ENC_TOKEN: u32 = 1036;
}

/// rxdebug's number of the class.
const REPORT_KIND: u8 = 4;
