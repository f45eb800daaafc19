//! Moves of a client that says what its script says: capabilities good and bad, requests of every kind, and what belongs to none.

use afs_datapath::capability::{
    Access, ByteRange, Capability, ChunkList, DriveKey, Generation, Group, GroupTag, KeyEpoch, ListTerms,
    Listed, ListedChunk, Nonces, Proof, Secret, StagingTag, StoreNumber, StreamName, Terms, TransferId,
};
use afs_datapath::frame::{
    ChunkReply, ChunkRequest, Content, DriveStatus, Failure, HandleNumber, Hello, Message, Presented,
    RequestId, StoreDescription, VERSION as FILES, Welcome,
};
use afs_datapath::session::Drive;
use afs_wire::ids::{DataVersion, Fid};
use afs_wire::vol::TransactionId;

use super::script::Script;
use super::watched::{VERSION, VOLUME, directory, file};
use super::watched_chunks::{STORE, chunk};

/// Versions of a hello; most of them are spoken.
pub const VERSIONS: [u32; 4] = [FILES, FILES, FILES, 77];

pub fn stream(number: u32) -> StreamName {
    StreamName { volume: VOLUME, transaction: TransactionId(-7), number }
}

pub fn tag(key: &DriveKey) -> GroupTag {
    key.tag(Group::Directory(directory(1)))
}

pub fn room(key: &DriveKey) -> StagingTag {
    key.staging_tag(7, file(2), key.holder(b"host", b"identity"))
}

/// A group that a capability may be for.
pub fn group(key: &DriveKey, script: &mut Script) -> Group {
    match script.below(14) {
        0..=2 => Group::Directory(directory(1)),
        3 => Group::Directory(directory(3)),
        4 => Group::File(file(2)),
        5 => Group::File(file(6)),
        6 => Group::Volume(VOLUME),
        7 | 8 => Group::Stream(stream(u32::from(script.byte() % 4))),
        9 | 10 => Group::Chunks(STORE),
        11 => Group::Tagged(tag(key)),
        12 => Group::Staged(STORE, room(key)),
        _ => Group::Chunks(StoreNumber(9)),
    }
}

/// A capability as a file server would give it, with what it permits chosen by the script.
pub fn capability(drive: &Drive, now: u64, script: &mut Script) -> Capability {
    let key = drive.key();
    let group = group(&key, script);
    let usual = match group {
        Group::Chunks(_) => Access::MANAGE,
        Group::Staged(..) => Access::WRITE,
        _ => Access::READ | Access::WRITE,
    };
    let access = script.pick(&[usual, usual, usual, usual, Access::READ, Access::WRITE]);
    let narrow = ByteRange::new(100, 2000).unwrap_or(ByteRange::ALL);
    Capability {
        drive: key.drive(),
        epoch: key.epoch(),
        group,
        access: access | script.pick(&[Access::default(), Access::ANY_MODE, Access::COMMANDED]),
        range: script.pick(&[ByteRange::ALL, ByteRange::ALL, ByteRange::ALL, narrow]),
        expires: now + script.pick(&[300, 300, 300, 60, 2, 0, 100_000]),
        generation: drive.revocations.generation(group),
        holder: key.holder(b"host", b"identity"),
    }
}

/// What the client presents: mostly a capability with its proof, else a changed capability, or the proof of another capability. Whether
/// the proof is right.
pub fn present(
    (given, secret): (Capability, &Secret),
    nonces: Nonces,
    script: &mut Script,
) -> (bool, Message) {
    let handle = HandleNumber(if script.once_in(60) { 6 } else { u32::from(script.byte() % 6) });
    let (mut capability, mut nonces) = (given, nonces);
    let is_right = match script.below(24) {
        0 => {
            capability.access = capability.access | Access::WRITE | Access::MANAGE;
            capability == given
        }
        1 => {
            capability.expires += 1;
            false
        }
        2 => {
            capability.generation = Generation(capability.generation.0 + 1);
            false
        }
        3 => {
            capability.epoch = KeyEpoch(capability.epoch.0 + 1);
            false
        }
        4 => {
            nonces.client.0[5] ^= 1;
            false
        }
        _ => true,
    };
    // The proof is of what was given; what is shown may be something else.
    let proof = Presented(Proof::new(&given, secret, &nonces));
    (is_right, Message::Present { handle, capability, proof })
}

/// A handle, and the group for which something was presented by it.
pub type Held = (HandleNumber, Group);

/// An object, mostly one of the group.
fn object((_, group): Held, script: &mut Script) -> Fid {
    match group {
        Group::File(fid) if !script.once_in(8) => return fid,
        Group::Stream(stream) if !script.once_in(8) => return stream.fid(),
        _ => {}
    }
    match script.below(12) {
        0..=3 => file(2),
        4 | 5 => file(6),
        6 => file(4),
        7 => file(102),
        8 => file(8),
        9 => directory(1),
        10 => stream(u32::from(script.byte() % 4)).fid(),
        _ => Fid::default(),
    }
}

fn range(script: &mut Script) -> ByteRange {
    match script.below(4) {
        0 | 1 => ByteRange::ALL,
        2 => ByteRange::at(u64::from(script.length()), u64::from(script.length())).unwrap_or(ByteRange::ALL),
        _ => ByteRange::at(u64::from(script.word()), u64::from(script.word())).unwrap_or(ByteRange::ALL),
    }
}

/// A read of a file, or of a stream.
pub fn read(request: RequestId, held: Held, script: &mut Script) -> Message {
    let credit = script.pick(&[0, 1, 1000, 300_000, 1 << 20, 1 << 20, u32::MAX]);
    let (handle, fid) = (held.0, object(held, script));
    if held.1.stream().is_some() && !script.once_in(8) {
        return Message::Read {
            request,
            handle,
            fid,
            range: ByteRange::ALL,
            version: DataVersion(0),
            credit,
        };
    }
    let version = script.pick(&[VERSION, VERSION, VERSION, VERSION, VERSION, DataVersion(0)]);
    Message::Read { request, handle, fid, range: range(script), version, credit }
}

/// A store into a file, or a stream. How many bytes it has.
pub fn store(request: RequestId, held: Held, script: &mut Script) -> (Message, u64) {
    let (handle, fid) = (held.0, object(held, script));
    if held.1.stream().is_some() && !script.once_in(8) {
        let description = StoreDescription::of_stream(StreamName::of(fid));
        return (Message::Store { request, handle, description }, u64::from(script.length()));
    }
    let (first, second) = (script.length(), script.length());
    let ranges = [ByteRange::at(0, first.into()), ByteRange::at(u64::from(first) + 10, second.into())];
    let ranges = ranges.into_iter().flatten().filter(|range| !range.is_empty()).collect();
    let description =
        StoreDescription::new(fid, 0, ranges).unwrap_or_else(|| StoreDescription::of_stream(stream(0)));
    let total = description.total();
    (Message::Store { request, handle, description }, total)
}

/// A request for chunks.
pub fn perform(request: RequestId, held: Held, drive: &Drive, script: &mut Script) -> Message {
    let key = drive.key();
    let (chunk, transfer) = (chunk(), TransferId(u128::from(script.byte() % 3)));
    let credit = script.pick(&[0, 1, 1000, 1 << 20]);
    let (start, end) = script.pick(&[(0, chunk.len), (65_536, 65_540), (5, 5), (9, 4), (0, u32::MAX)]);
    let terms = Terms {
        store: STORE,
        start: 0,
        end: script.pick(&[chunk.len, chunk.len, 65_536]),
        file: key.tag(Group::File(file(2))),
        generation: script.pick(&[drive.revocations.latest(), Generation(0)]),
    };
    let content = Content { length: script.length(), crc: script.pick(&[0, chunk.crc]) };
    let holder = key.holder(b"host", b"identity");
    let usual: &[usize] = match held.1 {
        Group::Tagged(_) => &[9, 10, 12],
        Group::Staged(..) => &[6, 7, 8, 14],
        _ => &[0, 1, 2, 3, 4, 5, 11, 13, 15],
    };
    let kind = if script.once_in(8) { script.below(16) } else { script.pick(usual) };
    let what = match kind {
        0 | 1 => ChunkRequest::Write { length: script.length() },
        2 => ChunkRequest::Read { chunk, start, end, credit },
        3 => ChunkRequest::Status,
        4 => ChunkRequest::Discard { chunks: vec![chunk; script.below(3)] },
        5 => ChunkRequest::Sweep { first: chunk.id, last: chunk.id, live: u32::from(script.byte() % 4) },
        6 => ChunkRequest::Stage { length: script.length() },
        7 | 8 => ChunkRequest::Forget,
        9 | 10 => {
            let listed = Box::new(listed(&key, terms, script));
            ChunkRequest::ReadListed { chunk, start, end, credit, listed }
        }
        11 => ChunkRequest::Deliver { group: tag(&key), transfer, chunk, terms },
        12 => ChunkRequest::Receive { transfer, chunk, start, end, credit },
        13 => ChunkRequest::Collect { holder, tag: room(&key), transfer, content },
        14 => ChunkRequest::Send { transfer, content },
        _ => ChunkRequest::Revoke { groups: vec![tag(&key); script.below(2)] },
    };
    Message::Perform { request, handle: held.0, what }
}

/// The chunk in a list of its own, which is bound, or for other terms.
fn listed(key: &DriveKey, terms: Terms, script: &mut Script) -> Listed {
    let mut listed = alone(key, tag(key), chunk(), terms);
    if script.once_in(5) {
        listed.binding.terms.store = StoreNumber(9);
    }
    listed
}

/// A chunk in a list of its own.
pub fn alone(key: &DriveKey, group: GroupTag, chunk: afs_drive::ChunkRef, terms: Terms) -> Listed {
    let Terms { store, start, end, file, generation } = terms;
    let list = ChunkList::new(&[ListedChunk { chunk, start, end }]).unwrap();
    let binding = key.bind_list(group, &list, ListTerms { store, file, generation });
    Listed { start, end, place: 0, count: 1, path: list.path(0), binding }
}

/// Messages that clients do not send, or not now.
pub fn misplaced(request: RequestId, script: &mut Script) -> Message {
    let nonce = afs_datapath::capability::Nonce([7; 32]);
    match script.below(6) {
        0 => Message::Hello(Hello { version: FILES, nonce }),
        1 => Message::Welcome(Welcome {
            version: FILES,
            nonce,
            drive: afs_datapath::capability::DriveId(1),
            epoch: KeyEpoch(1),
            requests_max: 1,
            handles_max: 1,
            store_credit: 1,
        }),
        2 => Message::Stored { request, ticket: afs_datapath::capability::TicketId(1) },
        3 => Message::Failed { request, failure: Failure::Io },
        4 => Message::Performed { request, reply: ChunkReply::Status(DriveStatus::default()) },
        _ => Message::Announce { request, length: u64::from(script.length()), file_length: 5 },
    }
}
