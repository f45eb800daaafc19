//! Layouts: which bytes a client reads at the drives themselves, who gets a layout, and what ends it before the reply to a change.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

mod lists;
use crate::rig;
use lists::chunk;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::{
    Capability, ChunkList, ListBinding, Listed, ListedChunk, Refusal, Secret, TransferId,
};
use afs_datapath::session::{Client as Session, Drive as Served, Error, Failure, Patience, Security};
use afs_drive::{ChunkId, ChunkRef};
use afs_remote::{DirectDrive, RemoteOptions, TELL_MAX};
use afs_rpc::{CallError, Class, Level};
use afs_sim::NodeId;
use afs_volume::{DataRoute, SLOT_LEN};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{
    self, CapabilityAccess, CapabilityOutcome, CapabilityRequest, CapabilityRequests, FileLayout,
    LayoutOutcome, LayoutRequest, LayoutRequests, ListedPart,
};
use afs_wire::ids::{DataVersion, Fid, PartitionId, PartitionNumber};
use afs_wire::vol::{self, AttachFlags};
use afs_wire::xdr::{BoundedVec, Decode, Encode, Fixed};
use rig::drive::READ;
use rig::far::{self, Far, acl};
use rig::{CallResult, Cell, Claim, Client, PATIENCE, mode};

const ALL: u64 = i64::MAX as u64;

/// A cell whose new data go to a drive on another host.
struct Scene {
    cell: Cell,
    host: NodeId,
    served: Arc<Served>,
    owner: Client,
    carol: Client,
    dir: Fid,
}

impl Scene {
    fn new(seed: u64) -> Self {
        let cell = Cell::new(seed);
        let Far { node: host, served, .. } = Far::new(&cell);
        far::add(&cell);
        let owner = cell.owner();
        let claim = Claim::of("carol").protected(Class::Rxkad, Level::Crypt);
        let carol = cell.client(1).acting_as(&claim);
        let dir = owner.make_dir(cell.root(), "d").unwrap().fid;
        owner.ask(fs::StoreAcl { fid: dir, acl: acl("2\n0\nadmin:staff\t9\nadmin\t127\n") }).unwrap();
        let scene = Self { cell, host, served, owner, carol, dir };
        scene.set_route(DataRoute::Drives);
        scene
    }

    fn set_route(&self, route: DataRoute) {
        far::set_route(&self.cell, self.dir.volume, route);
    }

    /// A file of the directory: two mebibytes, a hole, three bytes.
    fn file(&self, name: &str) -> Fid {
        let fid = self.owner.create(self.dir, name).unwrap().fid;
        self.owner.store(fid, 0, &content()).unwrap();
        self.owner.store(fid, 5 * SLOT_LEN, b"few").unwrap();
        fid
    }

    fn ask(&self, fid: Fid, start: u64, end: u64) -> CallResult<FileLayout> {
        ask(&self.carol, LayoutRequest { fid, version: self.cell.version(fid), start, end })
    }

    /// Reads a part as a client does.
    fn read(&self, layout: &FileLayout, part: &ListedPart) -> Result<Vec<u8>, Error> {
        let there = layout.parts.parts().iter().filter(|part| !part.copies.is_empty());
        let at = there.into_iter().position(|other| other == part).unwrap();
        self.read_listed(layout, at)
    }

    fn first(&self, layout: &FileLayout) -> Result<usize, Error> {
        self.read_listed(layout, 0).map(|bytes| bytes.len())
    }
}

/// The layout of a range of one file.
fn ask(by: &Client, wanted: LayoutRequest) -> CallResult<FileLayout> {
    let wanted = LayoutRequests::first_of([wanted]);
    let outcome = by.ask(fs::GetLayout { wanted })?.outcomes.into_vec().remove(0);
    outcome.into_layout().map_err(CallError::Abort)
}

fn content() -> Vec<u8> {
    (0..2 * SLOT_LEN as usize).map(|at| (at % 251) as u8).collect()
}

fn refused<T: std::fmt::Debug>(outcome: CallResult<T>, code: AbortCode) {
    assert!(matches!(outcome, Err(CallError::Abort(told)) if told == code), "{outcome:?}");
}

fn revoked() -> Error {
    Error::Failed(Failure::Refused(Refusal::Revoked))
}

#[test]
fn a_client_reads_a_file_at_the_drive() {
    let scene = Scene::new(1);
    let fid = scene.file("f");
    let layout = scene.ask(fid, 0, ALL).unwrap();
    assert_eq!((layout.drives.len(), layout.end), (1, 5 * SLOT_LEN + 3));
    let mut whole = vec![0; layout.end as usize];
    let mut at_the_server = 0;
    for part in layout.parts.parts() {
        let start = part.start as usize;
        match part.copies.is_empty() {
            true => at_the_server += part.length,
            false => {
                let bytes = scene.read(&layout, part).unwrap();
                whole[start..start + bytes.len()].copy_from_slice(&bytes);
            }
        }
    }
    assert_eq!((whole[..content().len()] == content()[..], at_the_server), (true, 3));
    // Part of it, and the rest by another call.
    let some = scene.ask(fid, SLOT_LEN + 5, SLOT_LEN + 6).unwrap();
    let parts = some.parts.parts();
    assert_eq!((parts.len(), parts[0].start, some.end), (1, SLOT_LEN, SLOT_LEN + 6));
    assert_eq!(scene.served.counts().refused, [0; 8]);
}

#[test]
fn a_layout_is_for_who_may_read_where_the_volume_permits_it() {
    let scene = Scene::new(2);
    let fid = scene.file("f");
    let version = scene.cell.version(fid);
    let ask = |client: &Client, fid, version| {
        ask(client, LayoutRequest { fid, version, start: 0, end: ALL }).map(drop)
    };
    let stranger = scene.cell.client(2);
    refused(ask(&stranger, fid, version), Errno::EACCES.to_uae());
    refused(ask(&scene.carol, scene.dir, version), Errno::EISDIR.to_uae());
    refused(ask(&scene.carol, fid, DataVersion(version.0 - 1)), Errno::EAGAIN.to_uae());
    scene.owner.ask(fs::StoreStatus { fid, status: mode(0o200) }).unwrap();
    refused(ask(&scene.carol, fid, version), Errno::EACCES.to_uae());
    scene.owner.ask(fs::StoreStatus { fid, status: mode(0o644) }).unwrap();
    ask(&scene.carol, fid, version).unwrap();
    for route in [DataRoute::Calls, DataRoute::Server] {
        scene.set_route(route);
        refused(ask(&scene.carol, fid, version), Errno::EOPNOTSUPP.to_uae());
    }
}

#[test]
fn the_setting_of_a_volume_ends_what_was_given_for_another_one() {
    let scene = Scene::new(7);
    scene.cell.open_data_path();
    let fid = scene.file("f");
    let held = scene.ask(fid, 0, ALL).unwrap();
    let path = scene.carol.path();
    let handle = path.handle(fid, READ);
    let version = scene.cell.version(fid);
    assert!(path.read(&handle, fid, (0, 9), version).is_ok());
    let (volume, partition) = (fid.volume, PartitionNumber(0));
    let set = |route| {
        let begin = vol::TransCreate { volume, partition, flags: AttachFlags::BUSY };
        let transaction = scene.owner.ask(begin).unwrap().transaction;
        scene.owner.ask(vol::SetRoute { transaction, route }).unwrap();
        scene.owner.ask(vol::EndTrans { transaction }).unwrap();
        assert_eq!(scene.owner.ask(vol::GetRoute { volume }).unwrap().route, route);
        scene.cell.sim.run_for(Duration::from_secs(1));
    };
    set(DataRoute::Server);
    assert_eq!(scene.first(&held), Err(revoked()));
    assert_eq!(path.read(&handle, fid, (0, 9), version), Err(revoked()));
    assert!(path.read(&path.handle(fid, READ), fid, (0, 9), version).is_ok());
    set(DataRoute::Calls);
    refused(scene.carol.capability(fid, READ).map(drop), Errno::EACCES.to_uae());
    assert_eq!(scene.carol.read(fid)[..9], content()[..9], "calls are for everybody");
    set(DataRoute::Drives);
    assert!(scene.carol.capability(fid, READ).is_ok());
    assert!(scene.first(&scene.ask(fid, 0, ALL).unwrap()).is_ok());
}

/// What a client holds is void at the drive when the reply to the change is there.
#[test]
fn a_change_of_rights_is_known_to_the_drive_before_its_reply() {
    type Change = fn(&Scene, Fid);
    let changes: [(&str, Change, bool); 5] = [
        (
            "another access list",
            |s, _| {
                s.owner.ask(fs::StoreAcl { fid: s.dir, acl: acl("1\n0\nadmin\t127\n") }).unwrap();
            },
            true,
        ),
        (
            "another mode",
            |s, fid| {
                s.owner.ask(fs::StoreStatus { fid, status: mode(0o200) }).unwrap();
            },
            false,
        ),
        (
            "removal",
            |s, _| {
                s.owner.remove(s.dir, "f").unwrap();
            },
            false,
        ),
        (
            "another directory",
            |s, _| {
                s.owner.rename(s.dir, "f", s.cell.root(), "g").unwrap();
            },
            false,
        ),
        (
            "another file in its place",
            |s, _| {
                s.file("g");
                s.owner.rename(s.dir, "g", s.dir, "f").unwrap();
            },
            false,
        ),
    ];
    for (what, change, is_for_all) in changes {
        let scene = Scene::new(3);
        let [fid, other] = ["f", "other"].map(|name| scene.file(name));
        let [held, neighbour] = [fid, other].map(|fid| scene.ask(fid, 0, ALL).unwrap());
        assert!(scene.first(&held).is_ok() && scene.first(&neighbour).is_ok());
        change(&scene, fid);
        assert_eq!(scene.first(&held), Err(revoked()), "{what}");
        // Files beside it go on, unless their list is another one.
        assert_eq!(scene.first(&neighbour).is_err(), is_for_all, "{what}");
    }
}

#[test]
fn a_drive_that_cannot_be_told_delays_a_change_for_a_moment_and_gets_no_clients() {
    let scene = Scene::new(5);
    let fid = scene.file("f");
    let held = scene.ask(fid, 0, ALL).unwrap();
    scene.cell.sim.cut(scene.cell.server, scene.host);
    let began = scene.cell.sim.now();
    scene.owner.ask(fs::StoreStatus { fid, status: mode(0o600) }).unwrap();
    assert!(scene.cell.sim.now() - began < TELL_MAX + Duration::from_secs(1));
    // The bound that is left: a minute.
    assert!(scene.first(&held).is_ok());
    refused(scene.ask(fid, 0, ALL).map(drop), Errno::EOPNOTSUPP.to_uae());
    scene.cell.sim.run_for(Duration::from_secs(60));
    assert_eq!(scene.first(&held), Err(Error::Failed(Failure::Refused(Refusal::Expired))));
    scene.cell.sim.mend(scene.cell.server, scene.host);
    scene.cell.sim.run_for(Duration::from_secs(60));
    let again = scene.ask(fid, 0, ALL).unwrap();
    assert!(scene.first(&again).is_ok());
    assert_eq!(scene.first(&held), Err(Error::Failed(Failure::Refused(Refusal::Expired))));
}

/// A chunk of which the file has a part of a piece has bytes of an earlier version beside it.
#[test]
fn what_would_bring_other_bytes_along_is_not_bound() {
    let scene = Scene::new(6);
    let fid = scene.file("f");
    // The file ends behind it, as this call has it.
    scene.owner.store(fid, 70_000, &[9; 100_000]).unwrap();
    let layout = scene.ask(fid, 0, ALL).unwrap();
    let parts: Vec<_> =
        layout.parts.parts().iter().map(|part| (part.start, part.length, part.copies.len())).collect();
    assert_eq!(parts, [(0, 70_000, 0), (70_000, 100_000, 1)]);
    assert_eq!(scene.read(&layout, &layout.parts.parts()[1]).unwrap(), [9; 100_000]);
}

/// Has a transfer commanded, and receives it.
fn deliver(scene: &Scene, fid: Fid, layout: &FileLayout, part: &ListedPart) -> CallResult<Vec<u8>> {
    let (transfer, version) = (Fixed([5; 16]), scene.cell.version(fid));
    let (position, copy) = (part.start, &part.copies[0]);
    let drive = &layout.drives[copy.drive as usize];
    let order = fs::Order::Send(fs::PartToSend { version, position, transfer });
    scene.carol.ask(fs::Command { fid, drive: drive.drive, order })?;
    let capability = Capability::from_bytes(&drive.capability.arguments).unwrap();
    let (secret, number) = (Secret::new(drive.capability.secret.0), TransferId(u128::from_be_bytes([5; 16])));
    let chunk = chunk(part);
    let range = part.chunk.offset..part.chunk.offset + part.length;
    let env = scene.carol.world.env(scene.carol.node);
    let work = async move {
        let stream = env.connect(far::at()).await.unwrap();
        let patience = Patience::default();
        let session = Session::open(env, stream, Security::Clear, patience).await.unwrap();
        let handle = session.present(&capability, &secret).unwrap();
        session.receive(&handle, number, (chunk, range)).await.unwrap()
    };
    Ok(scene.carol.world.block_on(scene.carol.node, PATIENCE, work).unwrap().to_vec())
}

#[test]
fn where_transfers_are_commanded_nothing_is_bound_and_each_is_sent_when_it_is_asked_for() {
    let scene = Scene::new(8);
    scene.set_route(DataRoute::Commanded);
    let fid = scene.file("f");
    let layout = scene.ask(fid, 0, ALL).unwrap();
    let slot = SLOT_LEN as usize;
    assert_eq!(layout.lists[0], fs::LIST_COMMANDED);
    for (number, part) in layout.parts.parts().iter().take(2).enumerate() {
        let bytes = deliver(&scene, fid, &layout, part).unwrap();
        assert_eq!(bytes, content()[number * slot..(number + 1) * slot]);
    }
}

#[test]
fn a_transfer_is_commanded_for_who_may_read_what_is_there() {
    let scene = Scene::new(9);
    scene.set_route(DataRoute::Commanded);
    let fid = scene.file("f");
    let (layout, version) = (scene.ask(fid, 0, ALL).unwrap(), scene.cell.version(fid));
    let drive = layout.drives[0].drive;
    let order =
        |version, position| fs::Order::Send(fs::PartToSend { version, position, transfer: Fixed([1; 16]) });
    let right = fs::Command { fid, drive, order: order(version, 0) };
    let ask = |client: &Client, call: &fs::Command| client.ask(call.clone()).map(drop);
    let carol = |call: fs::Command| ask(&scene.carol, &call);
    carol(right.clone()).unwrap();
    refused(ask(&scene.cell.client(2), &right), Errno::EACCES.to_uae());
    refused(
        carol(fs::Command { order: order(DataVersion(version.0 - 1), 0), ..right.clone() }),
        Errno::EAGAIN.to_uae(),
    );
    refused(carol(fs::Command { drive: Fixed([1; 16]), ..right.clone() }), Errno::ENXIO.to_uae());
    for nowhere in [3 * SLOT_LEN, 5 * SLOT_LEN, 9 * SLOT_LEN, i64::MAX as u64] {
        // A hole, bytes that the file server has, what is behind the end.
        let told = carol(fs::Command { order: order(version, nowhere), ..right.clone() });
        assert!(matches!(told, Err(CallError::Abort(_))), "{nowhere}: {told:?}");
    }
    refused(carol(fs::Command { order: order(version, u64::MAX), ..right.clone() }), Errno::EINVAL.to_uae());
    scene.owner.ask(fs::StoreStatus { fid, status: mode(0o200) }).unwrap();
    refused(carol(right.clone()), Errno::EACCES.to_uae());
    scene.owner.ask(fs::StoreStatus { fid, status: mode(0o644) }).unwrap();
    for route in [DataRoute::Calls, DataRoute::Server, DataRoute::Drives] {
        scene.set_route(route);
        refused(carol(right.clone()), Errno::EOPNOTSUPP.to_uae());
    }
    scene.set_route(DataRoute::Commanded);
    scene.cell.sim.cut(scene.cell.server, scene.host);
    refused(carol(right), Errno::ENXIO.to_uae());
}

impl Scene {
    /// The capability of a file's layout, given again.
    fn renew(&self, by: &Client, fid: Fid, drive: Fixed<16>) -> CallResult<CapabilityOutcome> {
        let wanted = CapabilityRequest { fid, access: CapabilityAccess::READ, drive };
        let wanted = CapabilityRequests::first_of([wanted]);
        let renewed = by.ask(fs::GetCapability { wanted })?.outcomes.into_vec().remove(0);
        match renewed.error {
            AbortCode::OK => Ok(renewed),
            code => Err(CallError::Abort(code)),
        }
    }
}

/// A layout with another capability.
fn with(layout: &FileLayout, renewed: &CapabilityOutcome) -> FileLayout {
    let mut drives = layout.drives.clone().into_vec();
    drives[0].capability = renewed.capability.clone();
    FileLayout { drives: BoundedVec::try_from(drives).unwrap(), ..layout.clone() }
}

#[test]
fn one_capability_given_again_serves_all_layouts_of_a_directory_until_rights_change() {
    let scene = Scene::new(20);
    let [fid, other] = ["f", "other"].map(|name| scene.file(name));
    let held = [fid, other].map(|fid| scene.ask(fid, 0, ALL).unwrap());
    scene.cell.sim.run_for(Duration::from_secs(61));
    let expired = Error::Failed(Failure::Refused(Refusal::Expired));
    held.iter().for_each(|layout| assert_eq!(scene.first(layout), Err(expired.clone())));
    let renewed = scene.renew(&scene.carol, fid, held[0].drives[0].drive).unwrap();
    let again = held.each_ref().map(|layout| with(layout, &renewed));
    again.iter().for_each(|layout| assert!(scene.first(layout).is_ok()));
    // A file whose mode changes is bound no more; the one beside it is.
    scene.owner.ask(fs::StoreStatus { fid, status: mode(0o200) }).unwrap();
    assert_eq!(scene.first(&again[0]), Err(revoked()));
    assert!(scene.first(&again[1]).is_ok());
    scene.owner.ask(fs::StoreAcl { fid: scene.dir, acl: acl("1\n0\nadmin\t127\n") }).unwrap();
    assert_eq!(scene.first(&again[1]), Err(revoked()));
    let drive = held[1].drives[0].drive;
    refused(scene.renew(&scene.carol, other, drive).map(drop), Errno::EACCES.to_uae());
}

/// All was revoked at the drive: a client that knows it drops its layouts, and is not refused once for each.
#[test]
fn a_renewal_tells_from_which_generation_on_bindings_are_good() {
    let scene = Scene::new(21);
    let fid = scene.file("f");
    let held = scene.ask(fid, 0, ALL).unwrap();
    // A change of the volume's setting revokes all.
    let (volume, partition) = (fid.volume, PartitionNumber(0));
    let begin = vol::TransCreate { volume, partition, flags: AttachFlags::BUSY };
    let transaction = scene.owner.ask(begin).unwrap().transaction;
    scene.owner.ask(vol::SetRoute { transaction, route: DataRoute::Drives }).unwrap();
    scene.owner.ask(vol::EndTrans { transaction }).unwrap();
    scene.cell.sim.run_for(Duration::from_secs(1));
    let renewed = scene.renew(&scene.carol, fid, held.drives[0].drive).unwrap();
    let oldest = ListBinding::from_bytes(&held.lists[0].0).unwrap().terms.generation;
    assert!(oldest.0 < renewed.valid_from);
    assert_eq!(scene.first(&with(&held, &renewed)), Err(revoked()));
    let fresh = with(&scene.ask(fid, 0, ALL).unwrap(), &renewed);
    assert!(scene.first(&fresh).is_ok());
    scene.owner.ask(fs::StoreAcl { fid: scene.dir, acl: acl("1\n0\nadmin\t127\n") }).unwrap();
    assert_eq!(scene.first(&fresh), Err(revoked()));
}

#[test]
fn a_renewal_is_for_who_may_read_where_the_volume_permits_it() {
    let scene = Scene::new(22);
    let fid = scene.file("f");
    let drive = scene.ask(fid, 0, ALL).unwrap().drives[0].drive;
    let renew = |client: &Client, fid, drive| scene.renew(client, fid, drive).map(drop);
    renew(&scene.carol, fid, drive).unwrap();
    refused(renew(&scene.cell.client(2), fid, drive), Errno::EACCES.to_uae());
    refused(renew(&scene.carol, scene.dir, drive), Errno::EISDIR.to_uae());
    refused(renew(&scene.carol, fid, Fixed([9; 16])), Errno::EOPNOTSUPP.to_uae());
    let none = scene.carol.ask(fs::GetCapability { wanted: CapabilityRequests::default() });
    refused(none.map(drop), Errno::EINVAL.to_uae());
    scene.owner.ask(fs::StoreStatus { fid, status: mode(0o200) }).unwrap();
    refused(renew(&scene.carol, fid, drive), Errno::EACCES.to_uae());
    scene.owner.ask(fs::StoreStatus { fid, status: mode(0o644) }).unwrap();
    scene.set_route(DataRoute::Server);
    refused(renew(&scene.carol, fid, drive), Errno::EOPNOTSUPP.to_uae());
    scene.set_route(DataRoute::Drives);
    scene.cell.sim.cut(scene.cell.server, scene.host);
    scene.cell.sim.run_for(Duration::from_secs(60));
    refused(renew(&scene.carol, fid, drive), Errno::EOPNOTSUPP.to_uae());
}

/// Replies name drives by IPv4, as all of AFS does: what is at another one is read and stored at the file server.
#[test]
fn nobody_is_sent_to_a_drive_without_an_address_in_the_form_of_replies() {
    let scene = Scene::new(23);
    let fid = scene.file("f");
    let at = "[2001:db8::9]:7010".parse().unwrap();
    let options = RemoteOptions::new("far", at, Security::Clear, Arc::new(far::key()), far::STORE);
    let direct = DirectDrive::new(scene.cell.sim.env(scene.cell.server), options);
    scene.cell.partitions().add_direct(PartitionId(0), far::FAR, direct);
    refused(scene.ask(fid, 0, ALL).map(drop), Errno::EOPNOTSUPP.to_uae());
    let room = scene.carol.ask(fs::GetRoom { fid, bytes: 1, length: 1 });
    refused(room.map(drop), Errno::EACCES.to_uae());
    let room = scene.owner.ask(fs::GetRoom { fid, bytes: 1, length: 1 });
    refused(room.map(drop), Errno::EOPNOTSUPP.to_uae());
}

impl Scene {
    /// The layouts of files by one call, each with the version that the file has.
    fn ask_all(&self, by: &Client, fids: &[Fid]) -> Vec<Result<FileLayout, AbortCode>> {
        let request =
            |fid: &Fid| LayoutRequest { fid: *fid, version: self.cell.version(*fid), start: 0, end: ALL };
        let wanted = LayoutRequests::first_of(fids.iter().map(request));
        let outcomes = by.ask(fs::GetLayout { wanted }).unwrap().outcomes.into_vec();
        outcomes.into_iter().map(LayoutOutcome::into_layout).collect()
    }
}

#[test]
fn layouts_of_several_files_come_in_one_call_and_are_those_that_come_alone() {
    let scene = Scene::new(23);
    let files = ["f", "g"].map(|name| scene.file(name));
    let long = scene.owner.create(scene.dir, "long").unwrap().fid;
    // Several files share the parts of a reply.
    let parts = (fs::LISTED_PARTS_MAX / 32) as u64;
    (0..=parts).for_each(|slot| _ = scene.owner.store(long, slot * SLOT_LEN, &content()[..65_536]).unwrap());
    let mut asked = vec![files[0]; 32];
    (asked[1], asked[2]) = (files[1], long);
    let replies = scene.ask_all(&scene.carol, &asked);
    for (fid, reply) in files.iter().zip(&replies) {
        let (alone, reply) = (scene.ask(*fid, 0, ALL).unwrap(), reply.as_ref().unwrap());
        let chunks = |layout: &FileLayout| {
            let of = |part: &ListedPart| part.copies.iter().map(|copy| copy.id).collect::<Vec<_>>();
            layout.parts.parts().iter().flat_map(of).collect::<Vec<_>>()
        };
        assert_eq!((chunks(reply), reply.end), (chunks(&alone), alone.end));
        assert!(scene.first(reply).is_ok());
    }
    let first = replies[2].as_ref().unwrap();
    assert_eq!((first.parts.parts().len() as u64, first.end), (parts, parts * SLOT_LEN));
    // What came so is void at the drive when the reply to a change of rights is there, as what came alone.
    scene.owner.ask(fs::StoreStatus { fid: files[0], status: mode(0o200) }).unwrap();
    assert_eq!(scene.first(replies[0].as_ref().unwrap()), Err(revoked()));
    assert!(scene.first(replies[1].as_ref().unwrap()).is_ok());
    scene.owner.ask(fs::StoreAcl { fid: scene.dir, acl: acl("1\n0\nadmin\t127\n") }).unwrap();
    assert_eq!(scene.first(replies[1].as_ref().unwrap()), Err(revoked()));
}

#[test]
fn each_of_several_layouts_is_decided_by_itself() {
    let scene = Scene::new(24);
    let [fid, hidden] = ["f", "hidden"].map(|name| scene.file(name));
    scene.owner.ask(fs::StoreStatus { fid: hidden, status: mode(0o200) }).unwrap();
    let told = |by: &Client, fids: &[Fid]| -> Vec<_> {
        scene.ask_all(by, fids).into_iter().map(|reply| reply.map(|reply| reply.drives.len())).collect()
    };
    let [no_right, no_file] = [Errno::EACCES, Errno::EISDIR].map(|errno| Err(errno.to_uae()));
    let all = [hidden, fid, scene.dir, fid];
    assert_eq!(told(&scene.carol, &all), [no_right, Ok(1), no_file, Ok(1)]);
    assert_eq!(told(&scene.cell.client(2), &[fid, hidden]), [no_right; 2]);
    let ask = |wanted| scene.carol.ask(fs::GetLayout { wanted });
    let version = DataVersion(scene.cell.version(fid).0 - 1);
    let old = ask(LayoutRequests::first_of([LayoutRequest { fid, version, start: 0, end: ALL }])).unwrap();
    assert_eq!(old.outcomes[0].error, Errno::EAGAIN.to_uae());
    refused(ask(LayoutRequests::default()).map(drop), Errno::EINVAL.to_uae());
    scene.set_route(DataRoute::Server);
    assert_eq!(told(&scene.carol, &[fid]), [Err(Errno::EOPNOTSUPP.to_uae())]);
}
