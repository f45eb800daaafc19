//! Layers of the network between two processes (CITI TR 01-3, Tables 1 and 2, Figure 2): streams of bytes by UDP, TCP, Rx and the
//! data path on one link, and a reader of chunks with and without a fetch ahead.
//!
//! The peer ([`Peer`]) sends, this end receives, compares nothing and counts. The peer is a process of its own on this machine, or
//! one that the user has started on another (`andrew-lab peer`).

mod chunks;
mod link;
mod peer;
mod served;
mod streams;
mod tables;
mod wire;

pub use link::{Link, PeerProcess};
pub use peer::Peer;
pub use tables::{Layers, figure2, measure, table1, table2};

use afs_datapath::capability::{DriveId, DriveKey, KeyEpoch};
use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};

/// Packets of Rx, header included: that of every AFS-3 peer on Ethernet, that of 9 KB, and the largest.
const PACKETS: [usize; 3] = [1444, 9000, 16_384];
/// Bytes of a chunk, and of a page of it that is read at a time.
const CHUNK: usize = 65_536;
const PAGE: usize = 4096;

/// A file of the peer: its vnode number is the length of the pieces in which it is sent by the data path.
fn file(piece: usize) -> Fid {
    Fid::new(VolumeId(1), VnodeId(u32::try_from(piece).unwrap_or(u32::MAX)), Uniquifier(1))
}

/// The key of the peer's drive, which both ends know: what it serves is no secret.
fn key() -> DriveKey {
    DriveKey::new(DriveId(1), KeyEpoch(1), [1; 32])
}
