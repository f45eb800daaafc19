//! Parts of replies about drives: layouts, rooms and capabilities for them, each to be falsified.

use std::net::Ipv4Addr;

use afs_sim::SimRng;
use afs_testkit::relay::Lie;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{
    self, CapabilityArguments, CapabilitySecret, DriveCapability, LayoutDrive, ListedParts, RoomRound,
};
use afs_wire::rpc::{self, Opcode, Request, ServiceId};
use afs_wire::xdr::{BoundedVec, Encode, Fixed};

use super::scene::GOOD;
use super::statements::{Falsify, Part};

/// A part that may be falsified.
pub enum DrivePart<'a> {
    Drive(&'a mut LayoutDrive),
    Capability(&'a mut CapabilityArguments, &'a mut CapabilitySecret, &'a mut u32),
    /// Whether a part of a reply is a refusal.
    Outcome(&'a mut AbortCode),
    /// A place in a list of drives.
    Place(&'a mut u32),
    Rounds(&'a mut Vec<RoomRound>),
    Room(&'a mut Fixed<16>),
    /// Id of a chunk.
    Chunk(&'a mut u128),
    /// Why a drive gives the chunks of a list.
    Binding(&'a mut [u8]),
    /// From when on a drive believes bindings.
    ValidFrom(&'a mut u64),
    /// Bytes of a part.
    Length(&'a mut u32),
}

/// A reply with some of its parts falsified; `None` if it is no such reply.
pub fn rewritten(
    service: ServiceId,
    opcode: Opcode,
    reply: &[u8],
    falsify: &mut Falsify<'_>,
) -> Option<Vec<u8>> {
    match (service, opcode.0) {
        (fs::GetRoom::SERVICE, fs::GetRoom::OPCODE) => room(reply, falsify),
        (fs::GetLayout::SERVICE, fs::GetLayout::OPCODE) => layouts(reply, falsify),
        (fs::GetCapability::SERVICE, fs::GetCapability::OPCODE) => capabilities(reply, falsify),
        _ => None,
    }
}

fn room(reply: &[u8], falsify: &mut Falsify<'_>) -> Option<Vec<u8>> {
    let mut reply = rpc::decode_reply::<fs::GetRoom>(reply).ok()?;
    drives(&mut reply.drives, falsify);
    let mut rounds = std::mem::take(&mut reply.rounds).into_vec();
    for round in &mut rounds {
        each(round, |place| falsify(Part::AtDrive(DrivePart::Place(place))));
    }
    falsify(Part::AtDrive(DrivePart::Rounds(&mut rounds)));
    reply.rounds = BoundedVec::first_of(rounds);
    falsify(Part::AtDrive(DrivePart::Room(&mut reply.room)));
    Some(reply.to_bytes())
}

fn layouts(reply: &[u8], falsify: &mut Falsify<'_>) -> Option<Vec<u8>> {
    let mut reply = rpc::decode_reply::<fs::GetLayout>(reply).ok()?;
    each(&mut reply.outcomes, |outcome| {
        falsify(Part::AtDrive(DrivePart::Outcome(&mut outcome.error)));
        layout(&mut outcome.layout, falsify);
    });
    Some(reply.to_bytes())
}

fn layout(layout: &mut fs::FileLayout, falsify: &mut Falsify<'_>) {
    drives(&mut layout.drives, falsify);
    each(&mut layout.lists, |list| falsify(Part::AtDrive(DrivePart::Binding(&mut list.0))));
    let mut parts = layout.parts.parts().to_vec();
    for part in &mut parts {
        falsify(Part::Count(&mut part.start));
        falsify(Part::AtDrive(DrivePart::Length(&mut part.length)));
        falsify(Part::AtDrive(DrivePart::Length(&mut part.chunk.length)));
        falsify(Part::AtDrive(DrivePart::Length(&mut part.chunk.offset)));
        for copy in &mut part.copies {
            falsify(Part::AtDrive(DrivePart::Place(&mut copy.drive)));
            falsify(Part::AtDrive(DrivePart::Chunk(&mut copy.id)));
        }
    }
    // Parts that no list can have are not told.
    if let Some(parts) = ListedParts::new(parts) {
        layout.parts = parts;
    }
    falsify(Part::Count(&mut layout.end));
}

fn capabilities(reply: &[u8], falsify: &mut Falsify<'_>) -> Option<Vec<u8>> {
    let mut reply = rpc::decode_reply::<fs::GetCapability>(reply).ok()?;
    each(&mut reply.outcomes, |outcome| {
        falsify(Part::AtDrive(DrivePart::Outcome(&mut outcome.error)));
        let DriveCapability { arguments, secret, seconds } = &mut outcome.capability;
        falsify(Part::AtDrive(DrivePart::Capability(arguments, secret, seconds)));
        falsify(Part::AtDrive(DrivePart::ValidFrom(&mut outcome.valid_from)));
    });
    Some(reply.to_bytes())
}

fn drives<const MAX: usize>(drives: &mut BoundedVec<LayoutDrive, MAX>, falsify: &mut Falsify<'_>) {
    each(drives, |drive| {
        falsify(Part::AtDrive(DrivePart::Drive(drive)));
        let DriveCapability { arguments, secret, seconds } = &mut drive.capability;
        falsify(Part::AtDrive(DrivePart::Capability(arguments, secret, seconds)));
    });
}

fn each<T, const MAX: usize>(all: &mut BoundedVec<T, MAX>, change: impl FnMut(&mut T)) {
    let mut changed = std::mem::take(all).into_vec();
    changed.iter_mut().for_each(change);
    *all = BoundedVec::first_of(changed);
}

/// Falsifies a part, if the lie is about such a part.
pub fn falsify(rng: &mut SimRng, lie: Lie, part: DrivePart<'_>) {
    match (lie, part) {
        (Lie::OtherDrive, DrivePart::Drive(drive)) => other_drive(rng, drive),
        (Lie::OtherDrive, DrivePart::Place(place)) => *place = *rng.pick(&PLACES).unwrap(),
        (Lie::OtherDrive, DrivePart::Rounds(rounds)) => other_rounds(rng, rounds),
        (Lie::OtherFid, DrivePart::Room(room)) => other_byte(rng, &mut room.0),
        (Lie::OtherFid, DrivePart::Chunk(id)) => *id ^= 1 << rng.index(128),
        (Lie::OtherLength, DrivePart::Length(length)) => *length = *rng.pick(&LENGTHS).unwrap(),
        (Lie::OtherVersion, DrivePart::ValidFrom(from)) => {
            *from = *rng.pick(&[0, from.saturating_sub(1), from.saturating_add(1), u64::MAX]).unwrap();
        }
        (Lie::OtherVersion, DrivePart::Binding(binding)) => other_binding(rng, binding),
        (Lie::OtherRights, DrivePart::Outcome(error)) => {
            *error = *rng.pick(&[AbortCode::OK, Errno::EACCES.to_uae(), Errno::EOPNOTSUPP.to_uae()]).unwrap();
        }
        (Lie::OtherRights, DrivePart::Capability(arguments, secret, _)) => {
            let mut bytes = arguments.as_bytes().to_vec();
            match rng.between(0, 2) {
                0 => other_byte(rng, &mut secret.0),
                1 => bytes.truncate(rng.index(bytes.len().max(1))),
                _ => other_byte(rng, &mut bytes),
            }
            *arguments = CapabilityArguments::truncated(&bytes);
        }
        (Lie::OtherPromise, DrivePart::Capability(_, _, seconds)) => {
            *seconds = *rng.pick(&[0, 1, i32::MAX as u32, u32::MAX]).unwrap();
        }
        _ => {}
    }
}

/// At another place, with another key, or another one of the server.
fn other_drive(rng: &mut SimRng, told: &mut LayoutDrive) {
    match rng.between(0, 4) {
        0 => told.address = *rng.pick(&ADDRESSES).unwrap(),
        1 => told.port = *rng.pick(&[0, 1, 7000, u16::MAX]).unwrap(),
        2 => told.clear = !told.clear,
        3 => other_byte(rng, &mut told.fingerprint.0),
        _ => other_byte(rng, &mut told.drive.0),
    }
}

fn other_rounds(rng: &mut SimRng, rounds: &mut Vec<RoomRound>) {
    match rng.between(0, 3) {
        0 => rounds.clear(),
        1 => rounds.insert(0, RoomRound::default()),
        2 => rounds.insert(0, RoomRound::first_of([0, 0])),
        _ => rounds.truncate(1),
    }
}

/// That transfers are commanded, that the chunk is in a bucket, or with a proof that is none.
fn other_binding(rng: &mut SimRng, binding: &mut [u8]) {
    match rng.between(0, 2) {
        0 => binding.fill(0),
        1 => binding.fill(0xff),
        _ => other_byte(rng, binding),
    }
}

fn other_byte(rng: &mut SimRng, bytes: &mut [u8]) {
    let (at, bit) = (rng.index(bytes.len().max(1)), rng.index(8));
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << bit;
    }
}

const PLACES: [u32; 5] = [0, 1, 2, 3, u32::MAX];
const LENGTHS: [u32; 7] = [0, 1, 4095, 200_001, 1 << 20, 1 << 31, u32::MAX];
/// This machine, nobody, many, one that is no drive, the client itself, a server of another cell, and drives.
const ADDRESSES: [Ipv4Addr; 8] = [
    Ipv4Addr::LOCALHOST,
    Ipv4Addr::UNSPECIFIED,
    Ipv4Addr::new(224, 0, 0, 1),
    Ipv4Addr::new(10, 0, 9, 9),
    Ipv4Addr::new(10, 0, 0, 11),
    GOOD,
    Ipv4Addr::new(10, 0, 1, 10),
    Ipv4Addr::new(10, 0, 1, 11),
];
