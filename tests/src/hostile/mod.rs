//! What a cell must bear: packets that mean nothing or harm, processes killed where they stand, disks that are full.

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
