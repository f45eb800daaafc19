//! Calls of monitoring tools, and statistics.

use super::volume::{FsCommand, FsCommandResult};
use super::{SERVICE, XSTATS_MAX};
use crate::ids::Fid;
use crate::xdr::BoundedVec;

xdr_struct! {
    /// One partition of a file server: `ViceDisk`, 40 bytes.
    #[derive(Copy)]
    pub struct ViceDisk {
        /// Free space in KiB.
        pub blocks_free: i32,
        /// Size in KiB; -1 in an unused slot.
        pub blocks: i32,
        /// Partition name, NUL-padded; raw bytes, not words.
        pub name: PackedName,
    }
}

impl ViceDisk {
    /// An unused slot.
    pub const UNUSED: Self = Self { blocks_free: 0, blocks: -1, name: PackedName([0; 32]) };
}

impl Default for ViceDisk {
    fn default() -> Self {
        Self::UNUSED
    }
}

/// `opaque[32]`: the bytes as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PackedName(pub [u8; 32]);

impl crate::xdr::Encode for PackedName {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

impl crate::xdr::Decode for PackedName {
    fn decode(r: &mut crate::xdr::Reader<'_>) -> Result<Self, crate::xdr::DecodeError> {
        r.array().copied().map(Self)
    }
}

macro_rules! statistics {
    ($($field:ident: $doc:literal,)*) => {
        xdr_struct! {
            /// A file server's counters: `ViceStatistics`, 580 bytes.
            #[derive(Copy, Default)]
            pub struct ViceStatistics {
                $(#[doc = $doc] pub $field: u32,)*
                /// Eight unused words.
                pub spares: [u32; 8],
                /// Its first ten partitions.
                pub disks: [ViceDisk; 10],
            }
        }
    };
}

statistics! {
    current_message_number: "Not used.",
    oldest_message_number: "Not used.",
    current_time: "The server's clock, in Unix seconds.",
    boot_time: "When the host started, in Unix seconds.",
    start_time: "When the server started, in Unix seconds.",
    current_connections: "Connections.",
    total_calls: "Calls of any kind.",
    total_fetches: "Fetches of status or data.",
    fetch_datas: "Fetches of data.",
    fetched_bytes: "Bytes fetched.",
    fetch_data_rate: "Bytes a second while fetching.",
    total_stores: "Stores of status or data.",
    store_datas: "Stores of data.",
    stored_bytes: "Bytes stored.",
    store_data_rate: "Bytes a second while storing.",
    rpc_bytes_sent: "Bytes sent by Rx.",
    rpc_bytes_received: "Bytes received by Rx.",
    rpc_packets_sent: "Packets sent by Rx.",
    rpc_packets_received: "Packets received by Rx.",
    rpc_packets_lost: "Packets lost.",
    rpc_bogus_packets: "Packets that made no sense.",
    system_cpu: "CPU time of the kernel.",
    user_cpu: "CPU time of processes.",
    nice_cpu: "CPU time of low-priority processes.",
    idle_cpu: "CPU time of nobody.",
    total_io: "Disk transfers.",
    active_vm: "Virtual memory in use.",
    total_vm: "Virtual memory.",
    ethernet_errors: "Network errors.",
    ethernet_writes: "Network writes.",
    ethernet_interrupts: "Network interrupts.",
    ethernet_good_reads: "Network reads.",
    ethernet_bytes_written: "Network bytes written.",
    ethernet_bytes_read: "Network bytes read.",
    process_size: "Size of the server process, in KiB.",
    workstations: "Clients known.",
    active_workstations: "Clients that called within the last quarter of an hour.",
}

/// Index of each counter of [`GetStatistics64Reply`].
pub mod statistic64 {
    /// The server's clock, in Unix seconds.
    pub const CURRENT_TIME: usize = 0;
    /// When the host started.
    pub const BOOT_TIME: usize = 1;
    /// When the server started.
    pub const START_TIME: usize = 2;
    /// Connections.
    pub const CURRENT_CONNECTIONS: usize = 3;
    /// Fetches of status or data.
    pub const TOTAL_FETCHES: usize = 4;
    /// Fetches of data.
    pub const FETCH_DATAS: usize = 5;
    /// Bytes fetched.
    pub const FETCHED_BYTES: usize = 6;
    /// Bytes a second while fetching.
    pub const FETCH_DATA_RATE: usize = 7;
    /// Stores of status or data.
    pub const TOTAL_STORES: usize = 8;
    /// Stores of data.
    pub const STORE_DATAS: usize = 9;
    /// Bytes stored.
    pub const STORED_BYTES: usize = 10;
    /// Bytes a second while storing.
    pub const STORE_DATA_RATE: usize = 11;
    /// Calls of any kind.
    pub const TOTAL_CALLS: usize = 12;
    /// Clients known.
    pub const WORKSTATIONS: usize = 13;
    /// Clients that called lately.
    pub const ACTIVE_WORKSTATIONS: usize = 14;
    /// Size of the server process, in KiB.
    pub const PROCESS_SIZE: usize = 15;
    /// Number of counters, which is also the version that a caller must request.
    pub const COUNT: usize = 16;
}

/// The version returned by XStatsVersion and GetXStats.
pub const XSTATS_VERSION: i32 = 2;

calls! {
    service SERVICE;

    /// Reads the counters.
    146 "GetStatistics" GetStatistics {} -> GetStatisticsReply { statistics: ViceStatistics };

    /// Reads the version of the extended statistics.
    159 "XStatsVersion" XStatsVersion {} -> XStatsVersionReply { version: i32 };

    /// Reads a collection of extended statistics.
    160 "GetXStats" GetXStats { client_version: i32, collection: i32 }
        -> GetXStatsReply { version: i32, time: i32, data: BoundedVec<i32, XSTATS_MAX> };

    /// Residency commands of MR-AFS; servers refuse them.
    220 "FsCmd" FsCmd { fid: Fid, input: FsCommand } -> FsCmdReply { output: FsCommandResult };

    /// Reads the counters that need 64 bits.
    65542 "GetStatistics64" GetStatistics64 {
        /// Must be [`statistic64::COUNT`].
        version: i32,
    } -> GetStatistics64Reply { counters: BoundedVec<u64, { statistic64::COUNT }> };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdr::Encode;

    #[test]
    fn sizes() {
        assert_eq!(ViceDisk::UNUSED.to_bytes().len(), 40);
        assert_eq!(ViceStatistics::default().to_bytes().len(), 580);
    }
}
