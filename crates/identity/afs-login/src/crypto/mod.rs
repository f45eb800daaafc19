//! Cryptography of a login, with the purpose of each key.
//!
//! OPAQUE is RFC 9807's configuration of ristretto255, SHA-512 and triple Diffie-Hellman, stretched with Argon2id;
//! everything else is X25519, Ed25519, HKDF with SHA-512 and XChaCha20-Poly1305. Source: `docs/protocol/login.md`.

mod exchange;
mod opaque;
mod randomness;
mod seal;
mod transcript;

pub(crate) use exchange::{Exchange, Share};
pub(crate) use opaque::{Suite, stretching};
pub(crate) use randomness::Randomness;
pub(crate) use seal::SealKey;
pub(crate) use transcript::Transcript;
