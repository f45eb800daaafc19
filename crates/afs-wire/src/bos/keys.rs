//! Calls on the cell's DES keys.

use super::SERVICE;
use crate::ids::UnixSeconds;
use crate::rpc::Nothing;

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

calls! {
    service SERVICE;

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
