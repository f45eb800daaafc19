//! Runs the fuzz target over seeded inputs, and properties of the codec.

#![allow(clippy::unwrap_used)]

use afs_datapath::capability::{
    Access, ByteRange, Capability, DriveId, Generation, Group, GroupTag, HolderId, KeyEpoch, Nonce, Proof,
    StagingTag, StoreNumber, StreamName, TicketId,
};
use afs_datapath::frame::{
    Decoder, Event, Failure, FrameError, Goodbye, HandleNumber, Hello, MESSAGE_MAX, Message, Presented,
    RequestId, StoreDescription, Welcome,
};
use afs_datapath::fuzzing::data_path;
use afs_wire::ids::{DataVersion, Fid, Uniquifier, VnodeId, VolumeId};
use afs_wire::xdr::{Decode, Encode};
use bytes::BytesMut;
use proptest::prelude::*;

fn fid() -> impl Strategy<Value = Fid> {
    any::<[u32; 3]>().prop_map(|[a, b, c]| Fid::new(VolumeId(a), VnodeId(b), Uniquifier(c)))
}

fn range() -> impl Strategy<Value = ByteRange> {
    (0..1u64 << 62, 0..1u64 << 62).prop_map(|(start, len)| ByteRange::at(start, len).unwrap())
}

fn group() -> impl Strategy<Value = Group> {
    prop_oneof![
        fid().prop_map(Group::File),
        fid().prop_map(Group::Directory),
        any::<u32>().prop_map(|volume| Group::Volume(VolumeId(volume))),
        fid().prop_map(|fid| Group::Stream(StreamName::of(fid))),
        any::<[u8; 12]>().prop_map(|tag| Group::Tagged(GroupTag(tag))),
        any::<(u32, [u8; 8])>().prop_map(|(store, tag)| Group::Staged(StoreNumber(store), StagingTag(tag))),
    ]
}

fn access() -> impl Strategy<Value = Access> {
    proptest::sample::select(vec![
        Access::default(),
        Access::READ,
        Access::WRITE | Access::ANY_MODE,
        Access::READ | Access::WRITE,
    ])
}

fn capability() -> impl Strategy<Value = Capability> {
    let ids = (any::<u128>(), any::<u32>(), any::<u64>(), any::<u64>(), any::<u128>());
    (ids, group(), access(), range()).prop_map(
        |((drive, epoch, expires, generation, holder), group, access, range)| Capability {
            drive: DriveId(drive),
            epoch: KeyEpoch(epoch),
            group,
            access,
            range,
            expires,
            generation: Generation(generation),
            holder: HolderId(holder),
        },
    )
}

fn request() -> impl Strategy<Value = RequestId> {
    (1..=u32::MAX).prop_map(RequestId)
}

fn description() -> impl Strategy<Value = StoreDescription> {
    (fid(), any::<u64>(), proptest::collection::vec((0..1u64 << 30, 1..1u64 << 30), 0..20)).prop_map(
        |(fid, length, steps)| {
            let mut at = 0;
            let ranges = steps.into_iter().map(|(gap, len)| {
                let range = ByteRange::at(at + gap, len).unwrap();
                at = range.end();
                range
            });
            StoreDescription::new(fid, length, ranges.collect()).unwrap()
        },
    )
}

fn failure() -> impl Strategy<Value = Failure> {
    let mut all: Vec<Failure> = afs_datapath::capability::Refusal::ALL.map(Failure::Refused).to_vec();
    all.extend([
        Failure::NoHandle,
        Failure::OtherVersion,
        Failure::NoObject,
        Failure::Unavailable,
        Failure::Busy,
    ]);
    all.extend([Failure::NoSpace, Failure::Io, Failure::Invalid, Failure::Stalled, Failure::NotStaged]);
    proptest::sample::select(all)
}

fn handle() -> impl Strategy<Value = HandleNumber> {
    any::<u32>().prop_map(HandleNumber)
}

fn message() -> impl Strategy<Value = Message> {
    let nonce = || any::<[u8; 32]>().prop_map(Nonce);
    prop_oneof![
        (any::<u32>(), nonce()).prop_map(|(version, nonce)| Message::Hello(Hello { version, nonce })),
        (any::<[u32; 5]>(), any::<u128>(), nonce()).prop_map(|([version, epoch, a, b, c], drive, nonce)| {
            Message::Welcome(Welcome {
                version,
                nonce,
                drive: DriveId(drive),
                epoch: KeyEpoch(epoch),
                requests_max: a,
                handles_max: b,
                store_credit: c,
            })
        }),
        (handle(), capability(), any::<[u8; 32]>()).prop_map(|(handle, capability, proof)| {
            Message::Present { handle, capability, proof: Presented(Proof(proof)) }
        }),
        handle().prop_map(|handle| Message::Withdraw { handle }),
        (request(), handle(), fid(), range(), any::<u64>(), any::<u32>()).prop_map(
            |(request, handle, fid, range, version, credit)| {
                Message::Read { request, handle, fid, range, version: DataVersion(version), credit }
            }
        ),
        (request(), any::<u64>(), any::<u64>())
            .prop_map(|(request, length, file_length)| Message::Announce { request, length, file_length }),
        (request(), any::<u32>()).prop_map(|(request, bytes)| Message::Credit { request, bytes }),
        (request(), handle(), description()).prop_map(|(request, handle, description)| Message::Store {
            request,
            handle,
            description
        }),
        (request(), any::<u128>())
            .prop_map(|(request, ticket)| Message::Stored { request, ticket: TicketId(ticket) }),
        (request(), failure()).prop_map(|(request, failure)| Message::Failed { request, failure }),
        request().prop_map(|request| Message::Cancel { request }),
        Just(Message::Alive),
        proptest::sample::select(vec![Goodbye::Done, Goodbye::Version, Goodbye::Violation, Goodbye::Idle])
            .prop_map(Message::Goodbye),
    ]
}

fn decode(bytes: &[u8]) -> Result<Option<Event>, FrameError> {
    Decoder::default().next(&mut BytesMut::from(bytes))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        data_path(&bytes);
    }

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

    #[test]
    fn capabilities_have_one_form(capability in capability()) {
        let bytes = capability.to_bytes();
        prop_assert_eq!(bytes.len(), Capability::WIRE_LEN);
        prop_assert_eq!(Capability::from_bytes(&bytes), Ok(capability));
    }
}

fn header(length: u32, kind: u32, request: u32) -> Vec<u8> {
    [length, kind, request].iter().flat_map(|word| word.to_be_bytes()).collect()
}

#[test]
fn lengths_and_kinds_are_bounded_before_anything_is_kept() {
    assert_eq!(decode(&header(262_145, 7, 1)), Err(FrameError::Length(262_145)));
    assert_eq!(decode(&header(262_144, 7, 1)), Ok(None));
    let long = MESSAGE_MAX as u32 + 1;
    assert_eq!(decode(&header(long, 5, 1)), Err(FrameError::Length(long)));
    assert_eq!(decode(&header(0, 0, 0)), Err(FrameError::Kind(0)));
    assert_eq!(decode(&header(0, 15, 0)), Err(FrameError::Kind(15)));
}

#[test]
fn a_request_is_named_where_there_is_one() {
    assert_eq!(decode(&header(0, 12, 0)), Err(FrameError::Request(RequestId(0))), "Cancel");
    assert_eq!(decode(&header(0, 7, 0)), Err(FrameError::Request(RequestId(0))), "Data");
    assert_eq!(decode(&header(0, 13, 4)), Err(FrameError::Request(RequestId(4))), "Alive");
}

#[test]
fn a_body_is_one_message() {
    let longer = [&header(4, 13, 0)[..], &[0; 4]].concat();
    assert!(matches!(decode(&longer), Err(FrameError::Body(_))));
    let shorter = [&header(4, 3, 0)[..], &[0; 4]].concat();
    assert!(matches!(decode(&shorter), Err(FrameError::Body(_))));
}

#[test]
fn ranges_of_a_store_are_in_order() {
    let new = |ranges: &[(u64, u64)]| {
        let ranges = ranges.iter().map(|(start, end)| ByteRange::new(*start, *end).unwrap());
        StoreDescription::new(Fid::default(), 0, ranges.collect())
    };
    assert_eq!(new(&[(0, 5), (5, 9), (20, 21)]).unwrap().total(), 10);
    assert_eq!(new(&[(3, 5), (20, 21)]).unwrap().extent(), ByteRange::new(3, 21).unwrap());
    assert_eq!(new(&[]).unwrap().extent(), ByteRange::new(0, 0).unwrap());
    for wrong in [&[(5, 9), (0, 5)][..], &[(0, 5), (4, 9)], &[(0, 0)], &[(0, 5), (7, 7)]] {
        assert_eq!(new(wrong), None, "{wrong:?}");
    }
    assert_eq!(new(&vec![(0, 1); 1001]), None);
}

#[test]
fn bytes_come_as_they_arrive() {
    let mut decoder = Decoder::default();
    let mut received = BytesMut::from(&[&header(6, 7, 9)[..], b"abcd"].concat()[..]);
    assert_eq!(decoder.next(&mut received), Ok(Some(Event::Data(RequestId(9), "abcd".into()))));
    assert_eq!((decoder.next(&mut received), decoder.missing()), (Ok(None), 2));
    received.extend_from_slice(&[b"ef", &header(0, 7, 9)[..], &header(0, 13, 0)].concat());
    assert_eq!(decoder.next(&mut received), Ok(Some(Event::Data(RequestId(9), "ef".into()))));
    assert_eq!(
        decoder.next(&mut received),
        Ok(Some(Event::Message(Message::Alive))),
        "empty frames are nothing"
    );
}
