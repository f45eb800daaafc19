//! What a drive refuses: a table of capabilities, each wrong in one respect.

#![allow(clippy::unwrap_used)]

use crate::kit;

use afs_datapath::capability::{
    Access, ByteRange, Capability, DriveId, Generation, Group, KeyEpoch, Refusal, Secret,
};
use afs_datapath::frame::{Event, Failure, HandleNumber, Message, Presented, RequestId};
use afs_datapath::session::{Client, Error, Handle, StoreDescription};
use afs_env::EnvExt;
use afs_wire::ids::VolumeId;
use kit::{Kit, VERSION, directory, drain, file, range, read};

const LEN: usize = 1000;

struct Case {
    kit: Kit,
    client: Client,
}

fn case() -> Case {
    let kit = Kit::new(1);
    kit.files.add(file(2), LEN);
    kit.files.add(file(4), LEN);
    kit.files.add(file(102), LEN);
    let client = kit.open();
    Case { kit, client }
}

impl Case {
    /// Seals a capability for the files of directory 1 with one change.
    fn present(&self, change: impl FnOnce(&mut Capability)) -> Handle {
        let mut capability = self.kit.capability(Group::Directory(directory(1)));
        change(&mut capability);
        self.client.present(&capability, &self.kit.drive.key().seal(&capability)).unwrap()
    }

    fn read(&self, handle: Handle, vnode: u32, range: ByteRange) -> Result<Vec<u8>, Error> {
        let client = self.client.clone();
        self.kit.run(async move { read(&client, &handle, file(vnode), range).await })
    }

    fn store(&self, handle: Handle, vnode: u32, range: ByteRange) -> Result<(), Error> {
        let client = self.client.clone();
        let store = StoreDescription::new(file(vnode), 0, vec![range]).unwrap();
        self.kit.run(async move {
            let mut leaving = client.store(&handle, &store).await?;
            leaving.put(vec![1; range.len() as usize].into()).await?;
            leaving.finish().await.map(drop)
        })
    }

    /// A read of file 2 is refused, for this reason, and counted.
    #[track_caller]
    fn assert_refused(&self, handle: Handle, refusal: Refusal) {
        assert_eq!(self.read(handle, 2, range(0, 10)), Err(refused(refusal)));
        assert!(self.kit.drive.counts().refused_for(refusal) > 0);
    }
}

fn refused(refusal: Refusal) -> Error {
    Error::Failed(Failure::Refused(refusal))
}

#[test]
fn a_good_one_is_honoured() {
    let case = case();
    let bytes = kit::pattern(file(2), LEN);
    assert_eq!(case.read(case.present(|_| {}), 2, range(10, 30)).unwrap(), bytes[10..30]);
    assert_eq!(case.read(case.present(|_| {}), 2, ByteRange::ALL).unwrap(), bytes);
    case.store(case.present(|_| {}), 2, range(0, 30)).unwrap();
    assert_eq!(case.kit.drive.counts().refused, [0; 8]);
}

#[test]
fn a_capability_of_a_file_and_of_a_volume_is_honoured() {
    let case = case();
    let of_file = case.present(|capability| capability.group = Group::File(file(2)));
    assert_eq!(case.read(of_file, 2, range(0, 5)).unwrap().len(), 5);
    let of_volume = case.present(|capability| capability.group = Group::Volume(kit::VOLUME));
    assert_eq!(case.read(of_volume, 102, range(0, 5)).unwrap().len(), 5);
}

#[test]
fn a_forged_secret_is_refused() {
    let case = case();
    let capability = case.kit.capability(Group::Directory(directory(1)));
    let handle = case.client.present(&capability, &Secret::new([0; 32])).unwrap();
    case.assert_refused(handle, Refusal::Forged);
}

/// The secret of a narrower capability does not make a wider one.
#[test]
fn changed_arguments_are_refused() {
    let case = case();
    let sealed = case.kit.capability(Group::Directory(directory(1)));
    let secret = case.kit.drive.key().seal(&sealed);
    let wider = [
        Capability { group: Group::Volume(kit::VOLUME), ..sealed },
        Capability { access: sealed.access | Access::ANY_MODE, ..sealed },
        Capability { range: range(0, 999), ..sealed },
        Capability { expires: sealed.expires + 1, ..sealed },
        Capability { generation: Generation(99), ..sealed },
        Capability { holder: case.kit.drive.key().holder(b"host", b"other"), ..sealed },
    ];
    for capability in wider {
        let handle = case.client.present(&capability, &secret).unwrap();
        case.assert_refused(handle, Refusal::Forged);
    }
}

#[test]
fn an_expired_one_is_refused() {
    let case = case();
    let now = case.kit.client_env().wall().secs;
    case.assert_refused(case.present(|capability| capability.expires = now), Refusal::Expired);
}

#[test]
fn one_that_expires_later_is_refused_then() {
    let case = case();
    let now = case.kit.client_env().wall().secs;
    let handle = case.present(|capability| capability.expires = now + 60);
    assert!(case.read(handle.clone(), 2, range(0, 10)).is_ok());
    case.kit.sim.run_for(std::time::Duration::from_secs(61));
    case.assert_refused(handle, Refusal::Expired);
}

#[test]
fn another_file_is_refused() {
    let case = case();
    case.assert_refused(
        case.present(|capability| capability.group = Group::File(file(4))),
        Refusal::OtherObject,
    );
}

#[test]
fn a_file_of_another_directory_is_refused() {
    let case = case();
    let handle = case.present(|_| {});
    assert_eq!(case.read(handle, 102, range(0, 10)), Err(refused(Refusal::OtherObject)));
}

#[test]
fn a_directory_itself_is_refused() {
    let case = case();
    assert_eq!(case.read(case.present(|_| {}), 1, range(0, 10)), Err(refused(Refusal::OtherObject)));
}

#[test]
fn another_volume_is_refused() {
    let case = case();
    let other = |capability: &mut Capability| capability.group = Group::Volume(VolumeId(9));
    case.assert_refused(case.present(other), Refusal::OtherObject);
    let elsewhere = afs_wire::ids::Fid { volume: VolumeId(9), ..directory(1) };
    let other = |capability: &mut Capability| capability.group = Group::Directory(elsewhere);
    case.assert_refused(case.present(other), Refusal::OtherObject);
}

#[test]
fn bytes_beyond_the_range_are_refused() {
    let case = case();
    let handle = case.present(|capability| capability.range = range(5, 20));
    assert_eq!(case.read(handle.clone(), 2, range(5, 20)).unwrap().len(), 15);
    for beyond in [range(4, 10), range(10, 21), ByteRange::ALL, range(30, 30)] {
        assert_eq!(case.read(handle.clone(), 2, beyond), Err(refused(Refusal::OutOfRange)), "{beyond:?}");
    }
    assert_eq!(case.store(handle, 2, range(10, 21)), Err(refused(Refusal::OutOfRange)));
}

#[test]
fn one_for_reading_is_refused_for_a_store() {
    let case = case();
    let reader = case.present(|capability| capability.access = Access::READ);
    assert_eq!(case.store(reader.clone(), 2, range(0, 10)), Err(refused(Refusal::NotAllowed)));
    assert!(case.read(reader, 2, range(0, 10)).is_ok());
    case.assert_refused(case.present(|capability| capability.access = Access::WRITE), Refusal::NotAllowed);
    assert!(case.kit.files.all_stored().is_empty());
}

#[test]
fn one_of_another_drive_is_refused() {
    let case = case();
    case.assert_refused(case.present(|capability| capability.drive = DriveId(0xd2)), Refusal::OtherDrive);
}

#[test]
fn one_of_an_old_epoch_is_refused() {
    let case = case();
    case.assert_refused(case.present(|capability| capability.epoch = KeyEpoch(4)), Refusal::OtherEpoch);
}

#[test]
fn a_revoked_one_is_refused() {
    for revoked in [Group::Directory(directory(1)), Group::Volume(kit::VOLUME)] {
        let case = case();
        let handle = case.present(|_| {});
        assert!(case.read(handle.clone(), 2, range(0, 10)).is_ok());
        case.kit.drive.revocations.revoke(revoked);
        case.assert_refused(handle, Refusal::Revoked);
        assert!(case.read(case.present(|_| {}), 2, range(0, 10)).is_ok(), "a new one");
    }
}

#[test]
fn a_revocation_of_another_group_does_not_matter() {
    let case = case();
    let handle = case.present(|_| {});
    case.kit.drive.revocations.revoke(Group::Directory(directory(3)));
    case.kit.drive.revocations.revoke(Group::File(file(2)));
    assert!(case.read(handle, 2, range(0, 10)).is_ok());
}

/// A stream in progress ends at its next piece.
#[test]
fn a_revocation_ends_a_stream() {
    let case = case();
    const STREAM: usize = 40 << 20;
    kit_file(&case, 6, STREAM);
    let (client, handle, drive) = (case.client.clone(), case.present(|_| {}), case.kit.drive.clone());
    let outcome = case.kit.run(async move {
        let mut arriving = client.read(&handle, file(6), ByteRange::ALL, VERSION).await.unwrap();
        arriving.next().await.unwrap();
        drive.revocations.revoke(Group::Directory(directory(1)));
        drain(arriving).await
    });
    assert_eq!(outcome, Err(refused(Refusal::Revoked)));
    assert!(case.kit.drive.counts().bytes_sent < STREAM as u64 / 2);
}

fn kit_file(case: &Case, vnode: u32, len: usize) {
    case.kit.files.add(file(vnode), len);
}

/// A store in progress ends at its next piece, too.
#[test]
fn a_revocation_ends_a_store() {
    let case = case();
    let (client, handle, drive) = (case.client.clone(), case.present(|_| {}), case.kit.drive.clone());
    let env = case.kit.client_env();
    let outcome = case.kit.run(async move {
        let store = StoreDescription::new(file(2), 0, vec![range(0, 2000)]).unwrap();
        let mut leaving = client.store(&handle, &store).await?;
        leaving.put(vec![1; 1000].into()).await?;
        env.sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!((drive.counts().in_progress, drive.counts().bytes_received), (1, 1000));
        drive.revocations.revoke(Group::Directory(directory(1)));
        leaving.put(vec![1; 1000].into()).await?;
        leaving.finish().await
    });
    assert_eq!(outcome, Err(refused(Refusal::Revoked)));
    assert!(case.kit.files.all_stored().is_empty());
}

/// A recorded presentation, sent again on another connection.
#[test]
fn a_replayed_one_is_refused() {
    let kit = Kit::new(2);
    kit.files.add(file(2), LEN);
    let (capability, secret) = kit.sealed(Group::Directory(directory(1)));
    let (mut first, mut second) = (kit.raw(), kit.raw());
    let replies = kit.run(async move {
        let (_, nonces) = first.greet().await;
        let proof = Presented(afs_datapath::capability::Proof::new(&capability, &secret, &nonces));
        let present = Message::Present { handle: HandleNumber(0), capability, proof };
        let read = Message::Read {
            request: RequestId(1),
            handle: HandleNumber(0),
            fid: file(2),
            range: range(0, 10),
            version: VERSION,
            credit: 10,
        };
        let mut replies = Vec::new();
        second.greet().await;
        for raw in [&mut first, &mut second] {
            raw.send(&present).await;
            raw.send(&read).await;
            replies.push(raw.next().await);
        }
        replies
    });
    let announced = Message::Announce { request: RequestId(1), length: 10, file_length: LEN as u64 };
    let failed = Message::Failed { request: RequestId(1), failure: Refusal::Forged.into() };
    assert_eq!(replies, [Some(Event::Message(announced)), Some(Event::Message(failed))]);
}

#[test]
fn a_withdrawn_handle_names_nothing() {
    let kit = Kit::new(3);
    kit.files.add(file(2), LEN);
    let (capability, secret) = kit.sealed(Group::Directory(directory(1)));
    let mut raw = kit.raw();
    let reply = kit.run(async move {
        let (_, nonces) = raw.greet().await;
        raw.present(0, &capability, &secret, &nonces).await;
        raw.send(&Message::Withdraw { handle: HandleNumber(0) }).await;
        let (request, handle) = (RequestId(1), HandleNumber(0));
        let fid = file(2);
        raw.send(&Message::Read { request, handle, fid, range: range(0, 1), version: VERSION, credit: 1 })
            .await;
        raw.message().await
    });
    assert_eq!(reply, Some(Message::Failed { request: RequestId(1), failure: Failure::NoHandle }));
}
