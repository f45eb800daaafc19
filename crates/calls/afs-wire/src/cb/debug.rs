//! Calls of debugging tools (`cmdebug`, `xstat_cm_test`) to clients.

use super::SERVICE;
use crate::ids::Fid;
use crate::xdr::{BoundedVec, ByteString, Chars};

/// Most words of extended statistics from a client.
pub const XSTATS_MAX: usize = 2048;

/// A cell's name in these calls.
pub type CellText = ByteString<256>;
/// Addresses of a cell's database servers.
pub type ServerList = BoundedVec<u32, 8>;
/// Configuration words, for which the protocol has no bound. OpenAFS sends nine.
pub type CacheConfig = BoundedVec<u32, 1024>;

xdr_struct! {
    /// State of a lock inside a cache manager: `AFSDBLockDesc`, 8 words.
    #[derive(Copy, Default)]
    pub struct LockDescription {
        /// Kinds of lock waited for.
        pub wait_states: i8,
        /// Kind of exclusive lock held.
        pub exclusive: i8,
        /// Number of readers.
        pub readers: i16,
        /// Number of waiters.
        pub waiting: i16,
        /// Not used.
        pub spare: i16,
        /// Last reader.
        pub last_reader: i32,
        /// Writer.
        pub writer: i32,
        /// Source location where it was taken.
        pub source: i32,
    }
}

xdr_struct! {
    /// A named lock: `AFSDBLock`.
    #[derive(Copy, Default)]
    pub struct NamedLock {
        /// Its name.
        pub name: Chars<16>,
        /// Its state.
        pub lock: LockDescription,
    }
}

macro_rules! cache_entry {
    ($(#[$meta:meta])* $name:ident, $length:ty) => {
        xdr_struct! {
            $(#[$meta])*
            #[derive(Copy, Default)]
            pub struct $name {
                /// The object's file server, or an address inside the cache manager.
                pub address: i32,
                /// The cell's number inside the cache manager.
                pub cell: i32,
                /// The object.
                pub fid: Fid,
                /// Bytes of data.
                pub length: $length,
                /// Data version.
                pub data_version: i32,
                /// The entry's lock.
                pub lock: LockDescription,
                /// The server that gave the promise.
                pub callback: i32,
                /// When the promise ends.
                pub callback_expires: i32,
                /// Reference count.
                pub references: i16,
                /// Open handles.
                pub opens: i16,
                /// Open handles for writing.
                pub writers: i16,
                /// 0 nothing special, 1 mount point, 2 root of a volume.
                pub mount_state: i8,
                /// Bits of state.
                pub states: i8,
            }
        }
    };
}

cache_entry! {
    /// An entry of the status cache: `AFSDBCacheEntry`.
    CacheEntry, i32
}
cache_entry! {
    /// An entry of the status cache, with a 64-bit length: `AFSDBCacheEntry64`.
    CacheEntry64, i64
}

calls! {
    service SERVICE;

    /// Reads a lock; abort 1 past the last.
    207 "GetLock" GetLock { index: i32 } -> GetLockReply { lock: NamedLock };

    /// Reads an entry of the status cache; abort 1 past the last.
    208 "GetCE" GetCe { index: i32 } -> GetCeReply { entry: CacheEntry };

    /// Reads the version of the extended statistics.
    209 "XStatsVersion" XStatsVersion {} -> XStatsVersionReply { version: i32 };

    /// Reads a collection of extended statistics.
    210 "GetXStats" GetXStats { client_version: i32, collection: i32 }
        -> GetXStatsReply { version: i32, time: i32, data: BoundedVec<i32, XSTATS_MAX> };

    /// Reads the rank of a server; both results are all ones past the last.
    215 "GetServerPrefs" GetServerPrefs { index: i32 } -> GetServerPrefsReply { address: u32, rank: u32 };

    /// Reads a cell and its database servers; the name is empty past the last.
    216 "GetCellServDB" GetCellServDb { index: i32 } -> CellReply { name: CellText, servers: ServerList };

    /// Reads the name of the client's own cell.
    217 "GetLocalCell" GetLocalCell {} -> GetLocalCellReply { name: CellText };

    /// Reads the configuration of the cache.
    218 "GetCacheConfig" GetCacheConfig { caller_version: u32 }
        -> GetCacheConfigReply {
            server_version: u32,
            /// Valid bytes of `config`.
            config_len: u32,
            config: CacheConfig,
        };

    /// Reads an entry of the status cache with a 64-bit length; abort 1 past the last.
    65536 "GetCE64" GetCe64 { index: i32 } -> GetCe64Reply { entry: CacheEntry64 };

    /// Reads a cell by its number inside the cache manager.
    65537 "GetCellByNum" GetCellByNum { cell: i32 } -> CellReply;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdr::Encode;

    #[test]
    fn sizes() {
        assert_eq!(LockDescription::default().to_bytes().len(), 32);
        assert_eq!(NamedLock::default().to_bytes().len(), 96);
        assert_eq!(CacheEntry::default().to_bytes().len(), 88);
        assert_eq!(CacheEntry64::default().to_bytes().len(), 92);
    }
}
