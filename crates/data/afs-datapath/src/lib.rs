//! The data path: bytes of files, and dumps of volumes, by capability over a byte stream, beside the calls of Rx.
//!
//! A *drive* serves bytes to every client that presents a capability sealed with the drive's key. It knows no users, no names and no
//! access lists; the file server that knows them seals capabilities and revokes them. The crate knows neither the file
//! server nor the cache manager, and runs over any [`afs_env::ByteStream`].
//!
//! | Module | Holds |
//! | --- | --- |
//! | [`capability`] | capabilities, the key that seals and checks them, revocation |
//! | [`frame`] | the frames of the protocol: encoding, bounded decoding |
//! | [`session`] | both ends of a connection: [`session::Client`], and [`session::serve`] for a drive |
//! | [`tls`] | TLS 1.3 with a raw public key that the client pins |
//! | [`volume_stream`] | a client's way to a stream of a volume, by the reply of the call that granted it |
//!
//! The protocol is in `docs/protocol/data-path.md`, the reasons in `docs/decisions/2026-11-23-data-path.md`.

mod addresses;
pub mod capability;
pub mod frame;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod session;
pub mod tls;
pub mod volume_stream;

pub use addresses::addresses;

/// Bytes below which a transfer gains nothing from the data path, unless somebody says otherwise: a call carries them in a few
/// packets.
pub const MINIMUM_SIZE: u64 = 64 << 10;
