//! The call that makes what was staged a file's, with the tables behind its arguments.

use afs_wire::fs::{self, CommitDrive};
use afs_wire::xdr::Encode;

use super::super::super::store::file_length;
use super::asking::Room;
use super::staging::Staged;
use crate::transfer::StoreRequest;

pub(super) fn commit(change: &StoreRequest<'_>, room: &Room, staged: &Staged) -> (fs::CommitRoom, Vec<u8>) {
    let mut tables = Vec::new();
    for (at, run) in room.drives.iter().zip(&staged.runs) {
        CommitDrive { drive: at.drive, run: run.unwrap_or_default() }.encode(&mut tables);
    }
    staged.places.iter().for_each(|place| place.encode(&mut tables));
    let request = fs::CommitRoom {
        fid: change.fid,
        status: change.status,
        expected: change.expected.unwrap_or(fs::ANY_VERSION),
        file_length: file_length(change),
        grown_to: grown_to(change),
        room: room.number,
        drives: room.drives.len() as u32,
        places: staged.places.len() as u32,
    };
    (request, tables)
}

fn grown_to(change: &StoreRequest<'_>) -> u64 {
    change.pieces.last().map_or(0, |piece| piece.range.end)
}
