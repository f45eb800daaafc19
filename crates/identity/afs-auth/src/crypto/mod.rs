//! Kerberos encryption types (RFC 3961): encryption, checksums, key derivation, PRF.
//!
//! [`EncType`] does everything in one call; [`SealKey`], [`OpenKey`] and [`MicKey`] hold the derived keys of one
//! usage, so that a packet costs no derivation, and work in place.

mod aes;
mod chained;
mod confounder;
mod derive;
mod enctype;
mod error;
mod mac;
mod mic;
mod nfold;
mod open;
mod prf;
mod profile;
mod rc4_hmac;
mod seal;

pub use confounder::Confounders;
pub use enctype::EncType;
pub use error::CryptoError;
pub use mic::MicKey;
pub use open::OpenKey;
pub use prf::{prf, prf_plus};
pub use seal::SealKey;

/// Longest checksum of any encryption type, in bytes.
pub const MIC_LEN_MAX: usize = 24;

/// Comparison in a time that depends on the lengths alone.
#[must_use]
pub fn equal_in_constant_time(a: &[u8], b: &[u8]) -> bool {
    subtle::ConstantTimeEq::ct_eq(a, b).into()
}
