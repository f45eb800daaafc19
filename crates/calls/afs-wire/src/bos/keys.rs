//! Calls on the cell's keys: those of single DES, and ours.

use super::SERVICE;
use crate::ids::UnixSeconds;
use crate::rpc::Nothing;
use crate::xdr::{BoundedVec, ByteString, Fixed};

xdr_struct! {
    /// `bozo_keyInfo`: properties of a key without the key itself.
    #[derive(Copy, Default)]
    pub struct KeyInfo {
        /// When the file of keys was changed last.
        pub changed: UnixSeconds,
        /// Microseconds of it; servers send 0.
        pub changed_micros: i32,
        /// The first four bytes of eight zeros encrypted with the key.
        pub checksum: u32,
        /// Zero.
        pub spare: i32,
    }
}

id_without_display! {
    /// A step of [`CellKeys`].
    pub struct KeyStep(i32);
}

impl KeyStep {
    /// Only lists the keys.
    pub const LIST: Self = Self(0);
    /// The sealed keys are coming: they open, and seal nothing yet.
    pub const OFFER: Self = Self(1);
    /// The coming keys of the kind and number are used.
    pub const USE: Self = Self(2);
    /// The coming keys of the kind and number are forgotten.
    pub const DROP: Self = Self(3);
    /// The used keys of the kind and number are removed.
    pub const REMOVE: Self = Self(4);
}

/// Most keys of a host.
pub const KEYS_MAX: usize = 256;

xdr_struct! {
    /// A key of a host, without the key itself.
    #[derive(Copy)]
    pub struct HeldKey {
        /// 1: rxgk; 2: rxkad; 0: rxkad of single DES.
        pub kind: u32,
        /// Its version number.
        pub number: u32,
        /// Its encryption type.
        pub enctype: i32,
        /// Whether it is coming, and not used yet.
        pub coming: bool,
        /// Tells it from another key of the same numbers. Zeros for a key of single DES, which could be found by it.
        pub digest: Fixed<16>,
    }
}

calls! {
    service SERVICE;

    /// Makes one step of a change of the cell's keys at this host, and lists its keys; for holders of the cell's key, encrypted.
    /// Source: `docs/protocol/extensions.md` "Keys of the cell".
    0x414E_4450 "CellKeys" CellKeys {
        step: KeyStep,
        /// As in [`HeldKey`].
        kind: u32,
        /// Version number of the keys.
        number: u32,
        /// With [`KeyStep::OFFER`] the keys, sealed for the share of this process.
        sealed: ByteString<16384>,
    } -> CellKeysReply {
        /// The share (X25519) of this process, for which keys are sealed.
        share: Fixed<32>,
        keys: BoundedVec<HeldKey, KEYS_MAX>,
    };

    /// Reads a key's number. Beyond the last the call fails with `BZDOM`.
    90 "ListKeys" ListKeys {
        /// From 0.
        index: i32,
    } -> ListKeysReply {
        number: i32,
        /// One byte in each word. Zeros, but from OpenAFS's servers over an encrypted connection.
        key: [u32; 8],
        info: KeyInfo,
    };

    /// Adds a key. The key itself, eight words after the number, is not decoded: it is never accepted here.
    91 "AddKey" AddKey { number: i32 } -> Nothing;

    /// Removes a key.
    92 "DeleteKey" DeleteKey { number: i32 } -> Nothing;
}
