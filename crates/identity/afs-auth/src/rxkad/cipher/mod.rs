//! Ciphers and digests of rxkad. All are fixed by the protocol and long broken: a 56-bit block cipher and a key
//! derivation on MD5. Nothing else may use them.

mod boxes;
mod des_key;
mod fcrypt;
mod kdf;
mod pcbc;

pub use des_key::{is_weak, with_odd_parity};
pub use fcrypt::Fcrypt;
pub use kdf::{compress_triple_des, derive};
