//! Calls of monitoring tools, and statistics.

use super::SERVICE;
use crate::ids::{UnixSeconds, VolumeId};

xdr_struct! {
    /// Head of OpenAFS's database: `vital_vlheader`.
    #[derive(Copy, Default)]
    pub struct DatabaseHeader {
        /// Version of its format.
        pub version: i32,
        /// Bytes of its header.
        pub header_size: i32,
        /// First free record.
        pub free: i32,
        /// Its end.
        pub end: i32,
        /// Records ever allocated.
        pub allocations: i32,
        /// Records ever freed.
        pub frees: i32,
        /// The next volume number.
        pub volume_id_max: VolumeId,
        /// Entries with a read-write, read-only, backup volume.
        pub entries: [i32; 3],
    }
}

xdr_struct! {
    /// The service's counters: `vldstats`.
    #[derive(Copy)]
    pub struct ServerStatistics {
        /// When the server started.
        pub start_time: UnixSeconds,
        /// Calls by opcode, from 501.
        pub requests: [i32; 50],
        /// Calls that failed, by opcode.
        pub aborts: [i32; 50],
        /// Not used.
        pub spares: [i32; 5],
    }
}

calls! {
    service SERVICE;

    /// Reads the service's counters.
    513 "GetStats" GetStats {} -> GetStatsReply { statistics: ServerStatistics, header: DatabaseHeader };
}
