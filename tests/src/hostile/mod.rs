//! Kit for tests of hostile conditions: damaged packets, killed processes, full disks.

pub mod acknowledged;
pub mod caller;
pub mod counters;
pub mod damage;
pub mod datagram_flood;
pub mod packets;
pub mod process;
pub mod samples;
pub mod small_disk;
pub mod writers;
