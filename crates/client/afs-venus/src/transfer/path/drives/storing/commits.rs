//! Tables of a commit: the drives of a room, and what was staged there.

use afs_wire::fs::{self, CommitPlace};
use afs_wire::xdr::Encode;

use super::super::super::store;
use super::asking::Room;
use crate::transfer::StoreRequest;

pub(super) fn commit(
    change: &StoreRequest<'_>,
    room: &Room,
    places: &[CommitPlace],
) -> (fs::Commit, Vec<u8>) {
    let mut tables = Vec::new();
    room.drives.iter().for_each(|at| at.drive.encode(&mut tables));
    places.iter().for_each(|place| place.encode(&mut tables));
    let counts = [room.drives.len() as u32, places.len() as u32];
    (store::request(change, room.number, counts), tables)
}
