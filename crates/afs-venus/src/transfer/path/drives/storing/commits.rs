//! The call that makes what was staged a file's, with the tables behind its arguments.

use afs_wire::fs::{self, CommitDrive, CommitPart, CommitPlace};
use afs_wire::xdr::{Encode, Fixed};

use super::super::super::store::file_length;
use super::asking::Room;
use super::staging::Staged;
use crate::transfer::StoreRequest;

/// Of a room at any number of drives.
pub(super) fn placed(change: &StoreRequest<'_>, room: &Room, staged: &Staged) -> (fs::CommitPlaced, Vec<u8>) {
    let mut tables = Vec::new();
    for (at, run) in room.drives.iter().zip(&staged.runs) {
        CommitDrive { drive: at.drive, run: run.unwrap_or_default() }.encode(&mut tables);
    }
    staged.places.iter().for_each(|place| place.encode(&mut tables));
    let request = fs::CommitPlaced {
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

/// Of a room at one drive, for a server that knows no others.
pub(super) fn at_one(change: &StoreRequest<'_>, room: &Room, staged: &Staged) -> (fs::CommitChunks, Vec<u8>) {
    let mut table = Vec::new();
    for CommitPlace { position, chunk, receipt, .. } in &staged.places {
        let (position, chunk, receipt) = (*position, *chunk, *receipt);
        CommitPart { position, chunk, receipt }.encode(&mut table);
    }
    let request = fs::CommitChunks {
        fid: change.fid,
        status: change.status,
        expected: change.expected.unwrap_or(fs::ANY_VERSION),
        file_length: file_length(change),
        grown_to: grown_to(change),
        drive: room.drives.first().map_or(Fixed([0; 16]), |at| at.drive),
        room: room.number,
        run: staged.runs.iter().flatten().next().copied().unwrap_or_default(),
        parts: staged.places.len() as u32,
    };
    (request, table)
}

fn grown_to(change: &StoreRequest<'_>) -> u64 {
    change.pieces.last().map_or(0, |piece| piece.range.end)
}
