//! Tests of the promises alone: no server; replies are given as a server would.

use std::net::SocketAddr;

use afs_rpc::Rx;
use afs_sim::{NodeId, Sim};
use afs_wire::fs::{CallBack, FileKind, Status, VolSync};
use afs_wire::ids::{DataVersion, Fid, Rights, Uniquifier, VnodeId, VolumeId, VolumeKind};
use afs_wire::vl::EntryFlags;

use super::rights::KnownRights;
use super::*;
use crate::identity::TokenId;
use crate::key::{CellIndex, NodeTarget};
use crate::location::{Address, Group, Server};
use crate::residency::{PinBounds, Pins};
use crate::sink::NoSink;

const CELL: CellIndex = CellIndex(0);
const VOLUME: VolumeId = VolumeId(7);

/// A client machine with this part alone, and a server that it knows.
struct Client {
    sim: Sim,
    node: NodeId,
    promises: Promises,
    kernel: Arc<KernelCaches>,
    vnodes: Arc<VnodeTable>,
    server: Arc<Server>,
    volume: Arc<Volume>,
    _rx: Rx,
}

fn client(kind: VolumeKind) -> Client {
    let sim = Sim::new(1);
    let node = sim.node("client", [10, 0, 0, 1].into());
    let env = sim.env(node);
    let here: SocketAddr = ([10, 0, 0, 1], 7001).into();
    let rx = sim.rx(node, env.clone(), here, afs_rx::Config::default(), afs_rpc::Limits::default());
    let location = Arc::new(Location::new(Vec::new()));
    let peer = ([10, 0, 0, 2], 7000).into();
    let address = |peer| Address::new(&rx, peer, Duration::from_secs(12));
    let server = location.servers().learn(CELL, None, 0, &[peer], 0, address).unwrap();
    let group = Group { name: "v".into(), ids: [VOLUME; 3], flags: EntryFlags::RW_EXISTS, sites: Vec::new() };
    let sites = vec![server.clone()];
    let volume = location.volumes().learn(CELL, VOLUME, kind, Arc::new(group), sites, env.now());
    let kernel =
        Arc::new(KernelCaches::new(env.clone(), Arc::new(NoSink), Arc::default(), Duration::from_secs(1)));
    let vnodes = Arc::new(VnodeTable::new(100));
    let parts = Parts {
        identity: Arc::new(Identity::new(env.clone(), None, None)),
        counters: Arc::default(),
        kernel: kernel.clone(),
        vnodes: vnodes.clone(),
        env,
        location,
        pins: Arc::new(Pins::new(PinBounds { objects: 0, bytes: 0, directory_bytes: 0 })),
    };
    let promises = Promises::new(parts, &Limits::default());
    Client { sim, node, promises, kernel, vnodes, server, volume, _rx: rx }
}

fn key(n: u32) -> Key {
    Key::new(CELL, Fid::new(VOLUME, VnodeId(n), Uniquifier(1)))
}

const FILE: u32 = 2;

fn status(version: u64) -> Status {
    Status { kind: FileKind::File, data_version: DataVersion(version), ..Status::default() }
}

impl Client {
    /// A reply to a call that began at this break number.
    fn reply(&self, key: Key, status: &Status, serial: u64) {
        self.reply_for(TokenId::NONE, key, status, serial);
    }

    fn reply_for(&self, token: TokenId, key: Key, status: &Status, serial: u64) {
        let origin = ReplyOrigin { server: &self.server, serial, started: self.promises.now(), token };
        self.reply_to(&origin, key, status);
    }

    fn reply_to(&self, origin: &ReplyOrigin<'_>, key: Key, status: &Status) {
        let vnode = self.promises.object(key);
        let callback = CallBack::shared(1000);
        self.promises.record_reply(&self.volume, &vnode, status, &callback, &VolSync::default(), origin);
    }

    fn fresh(&self, key: Key) -> Option<u64> {
        let status = self.vnodes.peek(key)?.fresh_status(&self.volume, self.promises.now())?;
        Some(status.data_version.0)
    }

    fn held(&self, key: Key) {
        self.kernel.nodes().remember(NodeTarget::Object(key), None);
    }
}

#[test]
fn promises_to_be_given_back_are_bounded() {
    let client = client(VolumeKind::ReadWrite);
    let mut give_ups = GiveUps::default();
    (0..20_000).for_each(|n| give_ups.add(0, client.server.clone(), key(n)));
    let taken = give_ups.take();
    assert_eq!(taken.iter().map(|(_, keys)| keys.len()).collect::<Vec<_>>(), [10_000]);
    assert!(give_ups.take().is_empty());
}

#[test]
fn a_promised_status_is_valid_until_it_is_broken() {
    let client = client(VolumeKind::ReadWrite);
    client.reply(key(FILE), &status(1), client.promises.serial());
    assert_eq!(client.fresh(key(FILE)), Some(1));
    let count = client.kernel.invalidations();
    client.promises.broken(key(FILE).fid);
    assert_eq!(client.fresh(key(FILE)), None);
    assert!(client.kernel.invalidations() > count);
}

#[test]
fn a_break_that_overtakes_the_reply_wins() {
    let client = client(VolumeKind::ReadWrite);
    let began = client.promises.serial();
    client.promises.object(key(FILE));
    client.promises.broken(key(FILE).fid);
    client.reply(key(FILE), &status(1), began);
    assert_eq!(client.fresh(key(FILE)), None);
    client.reply(key(FILE), &status(2), client.promises.serial());
    assert_eq!(client.fresh(key(FILE)), Some(2));
}

#[test]
fn a_volume_break_a_reset_and_a_move_end_all_their_promises() {
    type End = fn(&Client);
    let ends: [End; 3] = [
        |client| client.promises.broken(Fid::whole_volume(VOLUME)),
        |client| client.promises.server_reset(&client.server),
        |client| client.promises.volume_moved(&client.volume),
    ];
    for end in ends {
        let client = client(VolumeKind::ReadWrite);
        for n in [FILE, FILE + 2] {
            client.reply(key(n), &status(1), client.promises.serial());
        }
        end(&client);
        assert_eq!((client.fresh(key(FILE)), client.fresh(key(FILE + 2))), (None, None));
    }
}

#[test]
fn one_promise_is_for_all_of_a_volume_that_cannot_be_written() {
    let client = client(VolumeKind::ReadOnly);
    client.reply(key(FILE), &status(1), client.promises.serial());
    assert_eq!(client.fresh(key(FILE)), Some(1));
    let soon = client.promises.now() + Duration::from_secs(900);
    assert!(client.promises.volumes_due(soon).is_empty());
    assert_eq!(client.promises.volumes_due(soon + Duration::from_secs(100)).len(), 1);
    client.volume.set_promise(None);
    assert_eq!(client.fresh(key(FILE)), None);
}

#[test]
fn a_reply_from_before_a_local_change_brings_no_promise() {
    let client = client(VolumeKind::ReadWrite);
    let before = client.promises.serial();
    let change = ChangeReply { status: &status(2), sync: &VolSync::default(), serial: before };
    client.promises.record_change(&client.volume, &client.promises.object(key(FILE)), &change);
    client.reply(key(FILE), &status(1), before);
    assert_eq!(client.fresh(key(FILE)), None);
    client.reply(key(FILE), &status(2), client.promises.serial());
    assert_eq!(client.fresh(key(FILE)), Some(2));
}

#[test]
fn a_promise_is_ended_shortly_before_it_expires() {
    let client = client(VolumeKind::ReadWrite);
    client.held(key(FILE));
    client.reply(key(FILE), &status(1), client.promises.serial());
    let until = client.promises.now() + Duration::from_secs(980);
    client.promises.end_due(until - Duration::from_secs(1), 10);
    assert_eq!(client.fresh(key(FILE)), Some(1));
    client.promises.end_due(until, 10);
    assert_eq!(client.fresh(key(FILE)), None);
}

/// The server counts from some moment after the start of the call: the time that its reply takes must not be relied on.
#[test]
fn a_promise_lasts_from_the_beginning_of_its_call_and_not_from_the_answer() {
    for kind in [VolumeKind::ReadWrite, VolumeKind::ReadOnly] {
        let client = client(kind);
        let (serial, token) = (client.promises.serial(), TokenId::NONE);
        let origin = ReplyOrigin { server: &client.server, serial, started: client.promises.now(), token };
        client.sim.run_for(Duration::from_secs(100));
        client.reply_to(&origin, key(FILE), &status(1));
        // 1000 s minus the margin.
        client.sim.run_for(Duration::from_secs(879));
        assert_eq!(client.fresh(key(FILE)), Some(1));
        client.sim.run_for(Duration::from_secs(1));
        assert_eq!(client.fresh(key(FILE)), None);
    }
}

#[test]
fn promises_from_before_a_suspend_are_void() {
    let client = client(VolumeKind::ReadWrite);
    client.reply(key(FILE), &status(1), client.promises.serial());
    client.promises.clocks_read(client.promises.now());
    client.sim.run_for(Limits::default().maintenance + SLACK);
    assert_eq!(client.fresh(key(FILE)), Some(1));
    client.sim.run_for(Duration::from_secs(1));
    assert_eq!(client.fresh(key(FILE)), None);
    assert!(client.sim.is_up(client.node));
}

#[test]
fn a_promise_is_given_up_on_eviction_unless_the_object_is_back() {
    let client = client(VolumeKind::ReadWrite);
    client.reply(key(FILE), &status(1), client.promises.serial());
    (0..200).for_each(|n| drop(client.promises.object(key(1000 + n))));
    let owed = client.promises.take_give_ups();
    assert_eq!(owed.len(), 1);
    assert!(Arc::ptr_eq(&owed[0].0, &client.server) && owed[0].1 == [key(FILE)]);
    assert_eq!(client.promises.unused(&owed[0].1), [key(FILE)]);
    assert!(client.promises.take_give_ups().is_empty());
    client.reply(key(FILE), &status(1), client.promises.serial());
    assert!(client.promises.unused(&owed[0].1).is_empty());
    client.promises.gave_up(&owed[0].1);
    assert_eq!(client.fresh(key(FILE)), None);
}

#[test]
fn a_callers_rights_are_recorded_and_a_loss_invalidates() {
    let client = client(VolumeKind::ReadWrite);
    let (dir, alice) = (key(1), TokenId(3));
    let with = |rights| Status { kind: FileKind::Directory, caller_access: rights, ..status(1) };
    client.held(dir);
    client.reply_for(alice, dir, &with(Rights::ALL), client.promises.serial());
    let count = client.kernel.invalidations();
    client.reply_for(alice, dir, &with(Rights::READ), client.promises.serial());
    assert!(client.kernel.invalidations() > count);
    let known = client.vnodes.peek(dir).unwrap().state().rights.get(alice).unwrap();
    assert_eq!(known.rights, Rights::READ);
}

#[test]
fn only_private_names_are_invalidated_at_a_change_of_tokens() {
    let client = client(VolumeKind::ReadWrite);
    let dir = key(1);
    let with = |rights| Status { kind: FileKind::Directory, anonymous_access: rights, ..status(1) };
    client.reply(dir, &with(Rights::LOOKUP), client.promises.serial());
    assert!(client.promises.names_are_public(dir));
    let count = client.kernel.invalidations();
    client.promises.invalidate_private();
    assert_eq!(client.kernel.invalidations(), count);
    client.promises.broken(dir.fid);
    assert!(!client.promises.names_are_public(dir));
    let count = client.kernel.invalidations();
    client.promises.invalidate_private();
    assert!(client.kernel.invalidations() > count);
}

#[test]
fn rights_of_a_token_are_refreshed_before_they_expire() {
    let client = client(VolumeKind::ReadWrite);
    let (dir, alice) = (key(1), TokenId(3));
    let reply = Status { kind: FileKind::Directory, caller_access: Rights::READ, ..status(1) };
    client.reply_for(alice, dir, &reply, client.promises.serial());
    let vnode = client.vnodes.peek(dir).unwrap();
    let known = |token| client.promises.known_rights(token, &vnode, &client.volume, |_| false);
    let half = Limits::default().rights_max_age / 2;
    assert_eq!(
        known(alice),
        Some(KnownRights { rights: Rights::READ, is_ageing: false, is_promised: false })
    );
    assert_eq!((known(TokenId(4)), known(TokenId::NONE)), (None, None));
    client.sim.run_for(half + Duration::from_millis(1));
    assert_eq!(known(alice), Some(KnownRights { rights: Rights::READ, is_ageing: true, is_promised: false }));
    assert_eq!(client.promises.ageing_rights(alice, &vnode, &client.volume, 50), [dir]);
    client.sim.run_for(half);
    assert_eq!(known(alice), None);
    // No server is reachable: known rights stay valid.
    client.volume.relocate(client.volume.group(), Vec::new(), client.promises.now());
    assert_eq!(
        known(alice),
        Some(KnownRights { rights: Rights::READ, is_ageing: false, is_promised: false })
    );
    client.promises.was_refused(alice, &vnode);
    assert_eq!(known(alice), None);
}

impl Client {
    /// What is known of the rights of Alice, who has token 3, after a reply whose promise covers them.
    fn promised_rights(&self, dir: Key, serial: u64) -> impl Fn() -> Option<KnownRights> {
        let reply = Status { kind: FileKind::Directory, caller_access: Rights::READ, ..status(1) };
        let callback = CallBack::shared(1000).with_rights();
        let token = TokenId(3);
        let origin = ReplyOrigin { server: &self.server, serial, started: self.promises.now(), token };
        let vnode = self.promises.object(dir);
        self.promises.record_reply(&self.volume, &vnode, &reply, &callback, &VolSync::default(), &origin);
        move || self.promises.known_rights(token, &vnode, &self.volume, |_| false)
    }
}

const PROMISED: Option<KnownRights> =
    Some(KnownRights { rights: Rights::READ, is_ageing: false, is_promised: true });

#[test]
fn rights_that_are_promised_last_until_they_are_broken_or_the_promise_ends() {
    type End = fn(&Client);
    let ends: [End; 4] = [
        |client| client.promises.rights_broken(),
        |client| client.promises.broken(key(1).fid),
        |client| client.promises.server_reset(&client.server),
        |client| client.sim.run_for(Duration::from_secs(900)),
    ];
    for end in ends {
        let client = client(VolumeKind::ReadWrite);
        let known = client.promised_rights(key(1), client.promises.serial());
        client.sim.run_for(Duration::from_secs(100));
        assert_eq!(known(), PROMISED);
        end(&client);
        assert_eq!(known(), None);
    }
    // What is promised besides stays.
    let client = client(VolumeKind::ReadWrite);
    _ = client.promised_rights(key(1), client.promises.serial());
    client.promises.rights_broken();
    assert_eq!(client.fresh(key(1)), Some(1));
}

#[test]
fn a_break_of_rights_that_overtakes_the_reply_wins() {
    let client = client(VolumeKind::ReadWrite);
    let began = client.promises.serial();
    client.promises.rights_broken();
    assert_eq!(client.promised_rights(key(1), began)(), None);
    assert_eq!(client.promised_rights(key(1), client.promises.serial())(), PROMISED);
}

#[test]
fn anonymous_rights_are_valid_for_all_and_do_not_age() {
    let client = client(VolumeKind::ReadWrite);
    let reply = Status { kind: FileKind::Directory, anonymous_access: Rights::LOOKUP, ..status(1) };
    client.reply(key(1), &reply, client.promises.serial());
    let vnode = client.vnodes.peek(key(1)).unwrap();
    client.sim.run_for(Duration::from_secs(100));
    let enough = |rights: Rights| rights.contains(Rights::LOOKUP);
    let known = client.promises.known_rights(TokenId(3), &vnode, &client.volume, enough);
    assert_eq!(known, Some(KnownRights { rights: Rights::LOOKUP, is_ageing: false, is_promised: true }));
}
