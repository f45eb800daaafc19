//! Calls on the cell's old keys, those for DES.

use super::SERVICE;
use crate::ids::UnixSeconds;
use crate::rpc::Nothing;

xdr_struct! {
    /// `bozo_keyInfo`: what is told of a key instead of the key.
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
        /// A word for each byte. Zeros, but from OpenAFS's servers to those who asked over an encrypted connection.
        key: [u32; 8],
        info: KeyInfo,
    };

    /// Adds a key. The key itself, eight words behind the number, is left where it is: nothing here takes one.
    91 "AddKey" AddKey { number: i32 } -> Nothing;

    /// Forgets a key.
    92 "DeleteKey" DeleteKey { number: i32 } -> Nothing;
}
