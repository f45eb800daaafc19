//! Calls that carry a volume's dump.

use super::{NameChars, SERVICE, TransactionId};
use crate::ids::{KindNumber, UnixSeconds, VolumeId};
use crate::rpc::{Nothing, Streamed};
use crate::xdr::BoundedVec;
use std::net::Ipv4Addr;

xdr_struct! {
    /// Another volume server: `destServer`, 12 bytes.
    #[derive(Copy)]
    pub struct Destination {
        /// Its address.
        pub host: Ipv4Addr,
        /// Its UDP port.
        pub port: u32,
        /// Ignored; callers send 1.
        pub security: u32,
    }
}

xdr_struct! {
    /// Properties of a restored volume, which override those in the dump: `restoreCookie`, 140 bytes.
    #[derive(Copy, Default)]
    pub struct RestoreCookie {
        /// Its name.
        pub name: NameChars,
        /// Its kind.
        pub kind: KindNumber,
        /// The group's read-only volume.
        pub clone: VolumeId,
        /// The group's read-write volume.
        pub parent: VolumeId,
    }
}

impl RestoreCookie {
    /// Bytes on the wire.
    pub const WIRE_LEN: usize = 140;
}

xdr_struct! {
    /// One destination of [`ForwardMultiple`]: `replica`, 16 bytes.
    #[derive(Copy)]
    pub struct Replica {
        /// The transaction there.
        pub transaction: TransactionId,
        /// The server.
        pub server: Destination,
    }
}

/// Bits of [`DumpV2::flags`].
pub const OMIT_UNCHANGED_DIRECTORIES: i32 = 1;

calls! {
    service SERVICE;

    /// Writes a dump into the transaction's volume: the dump follows the arguments, to the end of the request.
    102 "Restore" Restore { transaction: TransactionId, flags: i32, cookie: RestoreCookie } -> Nothing;

    /// Makes the server send a dump to another server's transaction.
    103 "Forward" Forward {
        transaction: TransactionId,
        /// Only changes since; 0 is everything.
        from_date: UnixSeconds,
        destination: Destination,
        destination_transaction: TransactionId,
        cookie: RestoreCookie,
    } -> Nothing;

    /// Reads a dump, with every directory: raw bytes to the end of the reply.
    109 "Dump" Dump {
        transaction: TransactionId,
        /// Only changes since; 0 is everything.
        from_date: UnixSeconds,
    } -> Nothing;

    /// Makes the server send one dump to many. Check the results even if the call succeeds.
    128 "ForwardMultiple" ForwardMultiple {
        transaction: TransactionId,
        /// Only changes since; 0 is everything.
        from_date: UnixSeconds,
        replicas: BoundedVec<Replica, 13>,
        spare: i32,
        cookie: RestoreCookie,
    } -> ForwardMultipleReply { results: BoundedVec<i32, 13> };

    /// Estimates a dump's size.
    65537 "GetSize" GetSize {
        transaction: TransactionId,
        /// Only changes since; 0 is everything.
        from_date: UnixSeconds,
    } -> GetSizeReply {
        /// Bytes.
        dump_size: u64,
    };

    /// Reads a dump: raw bytes to the end of the reply.
    65538 "DumpV2" DumpV2 {
        transaction: TransactionId,
        /// Only changes since; 0 is everything.
        from_date: UnixSeconds,
        /// See [`OMIT_UNCHANGED_DIRECTORIES`].
        flags: i32,
    } -> Nothing;

    /// Splits a directory off into a volume of its own. The reply is lines of text ended by a NUL.
    65547 "SplitVolume" SplitVolume { volume: VolumeId, new: VolumeId, vnode: u32, verbose: i32 } -> Nothing;
}

impl Streamed for Restore {
    const HEAD_LEN: usize = 4 + 2 * 4 + RestoreCookie::WIRE_LEN;
    const COUNT_LEN: usize = 0;
}

impl Streamed for Dump {
    const HEAD_LEN: usize = 4 + 2 * 4;
    const COUNT_LEN: usize = 0;
}

impl Streamed for DumpV2 {
    const HEAD_LEN: usize = 4 + 3 * 4;
    const COUNT_LEN: usize = 0;
}

impl Streamed for SplitVolume {
    const HEAD_LEN: usize = 4 + 4 * 4;
    const COUNT_LEN: usize = 0;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::encode_call;
    use crate::xdr::Encode;

    #[test]
    fn sizes() {
        let cookie = RestoreCookie::default();
        assert_eq!(cookie.to_bytes().len(), RestoreCookie::WIRE_LEN);
        let restore = Restore { transaction: TransactionId(1), flags: 1, cookie };
        assert_eq!(encode_call(&restore).len(), Restore::HEAD_LEN);
        let dump = Dump { transaction: TransactionId(1), from_date: UnixSeconds(0) };
        assert_eq!(encode_call(&dump).len(), Dump::HEAD_LEN);
    }
}
