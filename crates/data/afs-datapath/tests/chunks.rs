//! Requests for chunks: encoding, bounds, and where they are permitted.

#![allow(clippy::unwrap_used)]

use crate::kit;

use afs_datapath::capability::{
    Access, ByteRange, Capability, ChunkList, ClaimId, DriveId, DriveKey, Generation, Group, GroupTag,
    HolderId, KeyEpoch, LIST_MAX, ListBinding, ListTerms, Listed, ListedChunk, Nonce, Nonces, Proof, Secret,
    StagingTag, StoreNumber, Terms, TransferId,
};
use afs_datapath::frame::{
    CHUNKS_MAX, ChunkReply, ChunkRequest, Content, Decoder, DriveStatus, Event, FrameError, Goodbye,
    HandleNumber, KeyBytes, LIVE_MAX, Message, Presented, RequestId, STAGED_CHUNKS_MAX, STAGED_LEN_MAX,
};
use afs_datapath::fuzzing::data_path;
use afs_drive::{ChunkId, ChunkRef, MAX_CHUNK_LEN, Usage};
use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};
use bytes::BytesMut;
use kit::Kit;
use proptest::prelude::*;

fn id() -> impl Strategy<Value = ChunkId> {
    any::<[u8; 16]>().prop_map(ChunkId::from_bytes)
}

fn chunk() -> impl Strategy<Value = ChunkRef> {
    (id(), 1..=MAX_CHUNK_LEN as u32, any::<u32>()).prop_map(|(id, len, crc)| ChunkRef { id, len, crc })
}

fn usage() -> impl Strategy<Value = Usage> {
    any::<(u64, u64)>().prop_map(|(free, total)| Usage { free, total })
}

fn terms() -> impl Strategy<Value = Terms> {
    (any::<[u32; 3]>(), any::<[u8; 12]>(), any::<u64>()).prop_map(
        |([store, start, end], file, generation)| {
            let (store, file, generation) = (StoreNumber(store), GroupTag(file), Generation(generation));
            Terms { store, start, end, file, generation }
        },
    )
}

fn content() -> impl Strategy<Value = Content> {
    (1..=STAGED_LEN_MAX, any::<u32>()).prop_map(|(length, crc)| Content { length, crc })
}

fn what() -> impl Strategy<Value = ChunkRequest> {
    let part = |chunk: ChunkRef, one: u32, other: u32, credit| {
        let (one, other) = (one % (chunk.len + 1), other % (chunk.len + 1));
        ChunkRequest::Read { chunk, start: one.min(other), end: one.max(other), credit }
    };
    prop_oneof![
        id().prop_map(|after| ChunkRequest::Begin { after }),
        (1..=MAX_CHUNK_LEN as u32).prop_map(|length| ChunkRequest::Write { length }),
        (chunk(), any::<u32>(), any::<u32>(), any::<u32>())
            .prop_map(move |(chunk, one, other, credit)| part(chunk, one, other, credit)),
        id().prop_map(|oldest| ChunkRequest::Sync { oldest }),
        proptest::collection::vec(chunk(), 0..20).prop_map(|chunks| ChunkRequest::Discard { chunks }),
        (id(), any::<u32>()).prop_map(|(before, credit)| ChunkRequest::Ranges { before, credit }),
        (id(), id(), 0..=LIVE_MAX).prop_map(|(one, other, live)| ChunkRequest::Sweep {
            first: one.min(other),
            last: one.max(other),
            live
        }),
        Just(ChunkRequest::Status),
        (any::<u32>(), any::<[u8; 32]>()).prop_map(|(epoch, key)| ChunkRequest::Adopt {
            epoch: KeyEpoch(epoch),
            key: KeyBytes(Secret::new(key))
        }),
        (chunk(), any::<[u32; 3]>(), terms(), proptest::collection::vec(any::<[u8; 32]>(), 0..=12)).prop_map(
            |(chunk, [credit, place, count], terms, path)| {
                let Terms { store, file, generation, start, end } = terms;
                let mac = [count as u8; 16];
                let binding = ListBinding { terms: ListTerms { store, file, generation }, mac };
                let listed = Listed { start, end, place, count: count % (LIST_MAX + 1), path, binding };
                ChunkRequest::ReadListed { chunk, start: 0, end: chunk.len, credit, listed: Box::new(listed) }
            }
        ),
        proptest::collection::vec(any::<[u8; 12]>().prop_map(GroupTag), 0..20)
            .prop_map(|groups| ChunkRequest::Revoke { groups }),
        Just(ChunkRequest::RevokeAll),
        (1..=STAGED_LEN_MAX).prop_map(|length| ChunkRequest::Stage { length }),
        Just(ChunkRequest::Forget),
        (any::<u128>(), any::<[u8; 8]>(), 1..=STAGED_CHUNKS_MAX).prop_map(|(claim, tag, count)| {
            ChunkRequest::Claim { claim: ClaimId(claim), tag: StagingTag(tag), count }
        }),
        (chunk(), any::<[u8; 12]>(), any::<u128>(), terms()).prop_map(|(chunk, group, transfer, terms)| {
            let terms = Terms { start: 0, end: chunk.len, ..terms };
            ChunkRequest::Deliver { group: GroupTag(group), transfer: TransferId(transfer), chunk, terms }
        }),
        (chunk(), any::<u128>(), any::<u32>()).prop_map(|(chunk, transfer, credit)| ChunkRequest::Receive {
            transfer: TransferId(transfer),
            chunk,
            start: 0,
            end: chunk.len,
            credit
        }),
        (any::<u128>(), any::<[u8; 8]>(), any::<u128>(), content()).prop_map(
            |(holder, tag, transfer, content)| ChunkRequest::Collect {
                holder: HolderId(holder),
                tag: StagingTag(tag),
                transfer: TransferId(transfer),
                content
            }
        ),
        (any::<u128>(), content())
            .prop_map(|(transfer, content)| ChunkRequest::Send { transfer: TransferId(transfer), content }),
    ]
}

fn reply() -> impl Strategy<Value = ChunkReply> {
    prop_oneof![
        (any::<u64>(), id(), usage()).prop_map(|(run, mark, usage)| ChunkReply::Begun { run, mark, usage }),
        (chunk(), usage()).prop_map(|(chunk, usage)| ChunkReply::Written { chunk, usage }),
        Just(ChunkReply::Done),
        (any::<bool>(), any::<u32>(), id()).prop_map(|(removed, missing, one_missing)| ChunkReply::Swept {
            removed,
            missing,
            one_missing
        }),
        (any::<[u64; 4]>(), usage()).prop_map(|([run, written, read, damaged], usage)| {
            ChunkReply::Status(DriveStatus { run, usage, written, read, damaged })
        }),
        any::<u64>().prop_map(|latest| ChunkReply::Revoked { latest: Generation(latest) }),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let request = || (1..=u32::MAX).prop_map(RequestId);
    prop_oneof![
        (request(), any::<u32>(), what()).prop_map(|(request, handle, what)| Message::Perform {
            request,
            handle: HandleNumber(handle),
            what
        }),
        (request(), reply()).prop_map(|(request, reply)| Message::Performed { request, reply }),
    ]
}

fn decode(bytes: &[u8]) -> Result<Option<Event>, FrameError> {
    Decoder::default().next(&mut BytesMut::from(bytes))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn messages_survive_encoding_and_decoding(message in message()) {
        let frame = message.to_frame();
        prop_assert_eq!(decode(&frame), Ok(Some(Event::Message(message))));
        prop_assert_eq!(decode(&frame[..frame.len() - 1]), Ok(None));
    }

    #[test]
    fn changed_messages(message in message(), size in any::<u8>(), at in any::<usize>(), change in 1u8..) {
        let mut frame = [&[size], &message.to_frame()[..]].concat();
        data_path(&frame);
        let at = 1 + at % (frame.len() - 1);
        frame[at] ^= change;
        data_path(&frame);
    }
}

fn key() -> DriveKey {
    DriveKey::new(DriveId(0xd1), KeyEpoch(5), std::array::from_fn(|at| at as u8))
}

/// A directory and a file of it.
fn tags() -> [GroupTag; 2] {
    let fid = |vnode, unique| Fid::new(VolumeId(536_870_913), VnodeId(vnode), Uniquifier(unique));
    [key().tag(Group::Directory(fid(1, 1))), key().tag(Group::File(fid(2, 7)))]
}

/// The terms on which the file may be read.
fn of_file(chunk: ChunkRef) -> Terms {
    let generation = Generation((2 << 32) + 5);
    Terms { store: StoreNumber(3), start: 0, end: chunk.len, file: tags()[1], generation }
}

/// The second chunk of a list of three, of which the others have the ids beside it.
fn listed(chunk: ChunkRef) -> ChunkRequest {
    let [directory, file] = tags();
    let element = |number: u64| {
        let id = ChunkId::from_parts(0x1_0000_0000, number << 12);
        ListedChunk { chunk: ChunkRef { id, ..chunk }, start: 0, end: chunk.len }
    };
    let list = ChunkList::new(&[element(0), element(1), element(2)]).unwrap();
    let terms = ListTerms { store: StoreNumber(3), file, generation: Generation((2 << 32) + 5) };
    let binding = key().bind_list(directory, &list, terms);
    let listed = Listed { start: 0, end: chunk.len, place: 1, count: 3, path: list.path(1), binding };
    ChunkRequest::ReadListed { chunk, start: 65_536, end: 65_540, credit: 1 << 20, listed: Box::new(listed) }
}

/// A capability to stage 1 MiB, and the tag of its room.
fn room() -> (Capability, StagingTag) {
    let file = Fid::new(VolumeId(536_870_913), VnodeId(2), Uniquifier(7));
    let (key, number) = (key(), 0x7777_7777_7777_7777_7777_7777_7777_7777);
    let holder = key.holder(b"host", b"identity");
    let tag = key.staging_tag(number, file, holder);
    let capability = Capability {
        drive: key.drive(),
        epoch: key.epoch(),
        group: Group::Staged(StoreNumber(3), tag),
        access: Access::WRITE,
        range: ByteRange::new(0, 1 << 20).unwrap(),
        expires: 1_800_000_000,
        generation: Generation((2 << 32) + 5),
        holder,
    };
    (capability, tag)
}

fn transfer() -> TransferId {
    TransferId(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef)
}

fn deliver(chunk: ChunkRef) -> ChunkRequest {
    ChunkRequest::Deliver { group: tags()[0], transfer: transfer(), chunk, terms: of_file(chunk) }
}

fn receive(chunk: ChunkRef) -> ChunkRequest {
    ChunkRequest::Receive { transfer: transfer(), chunk, start: 0, end: chunk.len, credit: 1 << 20 }
}

fn collect(length: u32) -> ChunkRequest {
    let (holder, content) = (key().holder(b"host", b"identity"), Content { length, crc: 0x0123_4567 });
    ChunkRequest::Collect { holder, tag: room().1, transfer: transfer(), content }
}

fn send(length: u32) -> ChunkRequest {
    ChunkRequest::Send { transfer: transfer(), content: Content { length, crc: 0x0123_4567 } }
}

/// The frames of `docs/protocol/data-path.md` section 8.
#[test]
fn the_vectors_of_the_document() {
    let text = include_str!("../../../../docs/protocol/data-path.md");
    let id = ChunkId::from_parts(0x1_0000_0000, 0x1000);
    let chunk = ChunkRef { id, len: 70_000, crc: 0x0123_4567 };
    let usage = Usage { free: 5, total: 9 };
    let perform = |what| Message::Perform { request: RequestId(4), handle: HandleNumber(2), what };
    let performed = |reply| Message::Performed { request: RequestId(4), reply };
    let (capability, tag) = room();
    let nonces = Nonces { drive: Nonce([0x11; 32]), client: Nonce([0x22; 32]) };
    let presented = |capability: Capability| {
        let proof = Presented(Proof::new(&capability, &key().seal(&capability), &nonces));
        Message::Present { handle: HandleNumber(2), capability, proof }
    };
    let commanded = Capability { access: Access::WRITE | Access::COMMANDED, ..capability };
    let claim = ChunkRequest::Claim { claim: ClaimId(9), tag, count: 1 };
    let messages = [
        ("ShowRoom", presented(capability)),
        ("ShowSend", presented(commanded)),
        ("Collect", perform(collect(70_000))),
        ("Send", perform(send(70_000))),
        ("Stage", perform(ChunkRequest::Stage { length: 70_000 })),
        ("Forget", perform(ChunkRequest::Forget)),
        ("Claim", perform(claim)),
        ("Write", perform(ChunkRequest::Write { length: 70_000 })),
        ("ReadChunk", perform(ChunkRequest::Read { chunk, start: 65_536, end: 65_540, credit: 1 << 20 })),
        ("Sync", perform(ChunkRequest::Sync { oldest: id })),
        ("Written", performed(ChunkReply::Written { chunk, usage })),
        ("Done", performed(ChunkReply::Done)),
        ("ReadListed", perform(listed(chunk))),
        ("Revoke", perform(ChunkRequest::Revoke { groups: tags().to_vec() })),
        ("Deliver", perform(deliver(chunk))),
        ("Receive", perform(receive(chunk))),
        ("Revoked", performed(ChunkReply::Revoked { latest: Generation((2 << 32) + 6) })),
    ];
    for (name, message) in messages {
        let hex: String = message.to_frame().iter().map(|byte| format!("{byte:02x}")).collect();
        let lines = text.lines().skip_while(|line| line.split(' ').next() != Some(name));
        let first = lines.clone().take(1).filter_map(|line| line.split_whitespace().nth(1));
        let rest = lines.skip(1).take_while(|line| line.starts_with("  ")).map(str::trim);
        let told: String = first.chain(rest).collect();
        assert_eq!(told, hex, "{name}");
    }
}

/// What cannot be asked for is no message.
#[test]
fn numbers_are_bounded() {
    let chunk = ChunkRef { id: ChunkId::MIN, len: 10, crc: 0 };
    let long = ChunkRef { len: MAX_CHUNK_LEN as u32 + 1, ..chunk };
    let empty = ChunkRef { len: 0, ..chunk };
    let read = |chunk, start, end| ChunkRequest::Read { chunk, start, end, credit: 1 };
    let wrong = [
        ChunkRequest::Write { length: 0 },
        ChunkRequest::Write { length: MAX_CHUNK_LEN as u32 + 1 },
        read(chunk, 3, 2),
        read(chunk, 0, 11),
        read(long, 0, 1),
        read(empty, 0, 0),
        ChunkRequest::Discard { chunks: vec![chunk; CHUNKS_MAX + 1] },
        ChunkRequest::Revoke { groups: vec![tags()[0]; CHUNKS_MAX + 1] },
        listed(empty),
        ChunkRequest::Stage { length: 0 },
        ChunkRequest::Stage { length: STAGED_LEN_MAX + 1 },
        ChunkRequest::Claim { claim: ClaimId(1), tag: StagingTag([1; 8]), count: 0 },
        ChunkRequest::Claim { claim: ClaimId(1), tag: StagingTag([1; 8]), count: STAGED_CHUNKS_MAX + 1 },
        deliver(empty),
        deliver(long),
        receive(empty),
        ChunkRequest::Receive { transfer: transfer(), chunk, start: 0, end: 11, credit: 1 },
        collect(0),
        collect(STAGED_LEN_MAX + 1),
        send(0),
        send(u32::MAX),
        ChunkRequest::Sweep { first: ChunkId::MAX, last: ChunkId::MIN, live: 0 },
        ChunkRequest::Sweep { first: ChunkId::MIN, last: ChunkId::MAX, live: LIVE_MAX + 1 },
    ];
    for what in wrong {
        let message = Message::Perform { request: RequestId(1), handle: HandleNumber(0), what };
        assert!(matches!(decode(&message.to_frame()), Err(FrameError::Body(_))), "{message:?}");
    }
    let most = ChunkRequest::Discard { chunks: vec![chunk; CHUNKS_MAX] };
    let message = Message::Perform { request: RequestId(1), handle: HandleNumber(0), what: most };
    assert_eq!(decode(&message.to_frame()), Ok(Some(Event::Message(message))));
}

#[test]
fn keys_in_messages_are_not_shown() {
    let key = KeyBytes(Secret::new([0x77; 32]));
    let shown = format!("{:?}", ChunkRequest::Adopt { epoch: KeyEpoch(1), key });
    assert!(!shown.contains("77") && !shown.contains("119"), "{shown}");
}

/// A file server is a drive without chunks: it speaks the version for files alone.
#[test]
fn a_drive_of_files_has_no_chunks() {
    let kit = Kit::new(1);
    let group = Group::Chunks(StoreNumber(0));
    let capability = Capability { access: Access::MANAGE, ..kit.capability(group) };
    let secret = kit.drive.key().seal(&capability);
    let mut raw = kit.raw();
    let told = kit.run(async move {
        let (_, nonces) = raw.greet().await;
        raw.present(0, &capability, &secret, &nonces).await;
        let what = ChunkRequest::Status;
        raw.send(&Message::Perform { request: RequestId(1), handle: HandleNumber(0), what }).await;
        raw.message().await
    });
    assert_eq!(told, Some(Message::Goodbye(Goodbye::Violation)));
    kit.assert_quiet();
}
