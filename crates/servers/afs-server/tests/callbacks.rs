//! Promises between a server and several clients, some of them dead, without a callback service, old or
//! moved.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use afs_rpc::CallError;
use afs_server::FileServerLimits;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, FIDS_MAX};
use afs_wire::ids::{Fid, Uuid};
use rig::{Cell, Client, Heard, Manner, SERVER_UUID};

const MODERN: [Heard; 2] = [Heard::TellMe, Heard::Reset(SERVER_UUID)];

fn breaks(heard: &[Heard]) -> Vec<Fid> {
    let fids = heard.iter().map(|heard| match heard {
        Heard::Break(fids) => fids.clone(),
        other => panic!("unexpected {other:?}"),
    });
    fids.flatten().collect()
}

/// Two clients that have both read a file of the root directory.
fn two_readers(cell: &Cell) -> (Client, Client, Fid) {
    let (a, b) = (cell.client(1), cell.client(2));
    let fid = a.create(cell.root(), "f").unwrap().fid;
    a.store(fid, 0, b"old").unwrap();
    for client in [&a, &b] {
        client.fetch_status(cell.root()).unwrap();
        client.read(fid);
        client.heard();
    }
    (a, b, fid)
}

#[test]
fn the_other_client_hears_before_the_writer_is_answered() {
    let cell = Cell::new(21);
    let (a, b, fid) = two_readers(&cell);
    a.store(fid, 0, b"new").unwrap();
    // Whatever has arrived by now arrived before the reply.
    assert_eq!(b.heard(), [Heard::Break(vec![fid])]);
    assert_eq!(a.heard(), []);
    assert_eq!(b.read(fid), b"new");
    b.store(fid, 0, b"newer").unwrap();
    assert_eq!(a.heard(), [Heard::Break(vec![fid])], "the writer kept its promise");
    b.store(fid, 0, b"newest").unwrap();
    assert_eq!(a.heard(), [], "broken once, and not asked for again");
}

#[test]
fn every_kind_of_change_breaks_what_it_changed() {
    let cell = Cell::new(22);
    let (a, b, fid) = two_readers(&cell);
    let (root, volume) = (cell.root(), cell.volumes.root_cell);
    let dir = a.make_dir(root, "d").unwrap().fid;
    let see = |fids: &[Fid]| {
        for fid in fids {
            b.fetch_status(*fid).unwrap();
        }
        b.heard();
    };
    let told = |expected: &[Fid]| {
        let told: BTreeSet<Fid> = breaks(&b.heard()).into_iter().collect();
        assert_eq!(told, expected.iter().copied().collect::<BTreeSet<_>>());
    };
    see(&[root, dir, fid]);
    a.create(root, "g").unwrap();
    told(&[root]);
    see(&[root]);
    a.link(root, "h", fid).unwrap();
    told(&[root, fid]);
    see(&[root, fid]);
    a.remove(root, "h").unwrap();
    told(&[root, fid]);
    assert_eq!(breaks(&a.heard()), [fid], "the reply does not tell of the file that has other names");
    see(&[root, dir, fid]);
    a.rename(root, "f", dir, "f").unwrap();
    told(&[root, dir]);
    see(&[root, dir, fid]);
    a.ask(fs::StoreStatus { fid, status: rig_mode(0o600) }).unwrap();
    told(&[fid]);
    see(&[dir]);
    let acl = fs::AclText::new(b"1\n0\nsystem:anyuser\t127\n\0".to_vec()).unwrap();
    a.ask(fs::StoreAcl { fid: dir, acl }).unwrap();
    told(&[dir]);
    see(&[root, dir, fid]);
    a.remove(dir, "f").unwrap();
    told(&[dir]);
    let other = a.make_dir(root, "e").unwrap().fid;
    see(&[root, dir, other]);
    a.heard();
    a.rename(root, "d", other, "d").unwrap();
    told(&[root, dir, other]);
    assert_eq!(breaks(&a.heard()), [dir], "a directory that moved has changed for everybody");
    cell.files().clients().break_volume(volume);
    cell.sim.run_for(Duration::from_secs(1));
    assert_eq!(breaks(&a.heard()), [Fid::whole_volume(volume)]);
}

fn rig_mode(bits: u32) -> fs::SetStatus {
    fs::SetStatus { mode: Some(afs_wire::ids::Mode(bits)), ..fs::SetStatus::default() }
}

#[test]
fn a_dead_client_delays_a_writer_once_and_not_for_long() {
    let cell = Cell::new(23);
    let (a, b, fid) = two_readers(&cell);
    cell.sim.cut(cell.server, b.node);
    cell.sim.cut(b.node, cell.server);
    let before = cell.sim.now();
    a.store(fid, 0, b"new").unwrap();
    assert!(cell.sim.now() - before < Duration::from_secs(15));
    let before = cell.sim.now();
    a.store(fid, 0, b"newer").unwrap();
    a.create(cell.root(), "g").unwrap();
    assert!(cell.sim.now() - before < Duration::from_secs(1), "known to be down by now");
    assert_eq!(b.heard(), []);
    cell.sim.mend(cell.server, b.node);
    cell.sim.mend(b.node, cell.server);
    // Missed breaks are delivered before its next call is answered.
    b.fetch_status(fid).unwrap();
    let told: BTreeSet<Fid> = breaks(&b.heard()).into_iter().collect();
    assert_eq!(told, BTreeSet::from([fid, cell.root()]));
}

#[test]
fn owed_breaks_come_in_batches() {
    let cell = Cell::new(24);
    let (a, b) = (cell.client(1), cell.client(2));
    let fids: Vec<Fid> = (0..120).map(|n| a.create(cell.root(), &format!("f{n}")).unwrap().fid).collect();
    for some in fids.chunks(FIDS_MAX) {
        b.ask(fs::InlineBulkStatus { fids: fs::Fids::first_of(some.iter().copied()) }).unwrap();
    }
    b.heard();
    cell.sim.cut(cell.server, b.node);
    cell.sim.cut(b.node, cell.server);
    for fid in &fids {
        a.store(*fid, 0, b"x").unwrap();
    }
    cell.sim.mend(cell.server, b.node);
    cell.sim.mend(b.node, cell.server);
    b.fetch_status(fids[0]).unwrap();
    let heard = b.heard();
    assert!(heard.len() <= 3, "{} messages", heard.len());
    let told: BTreeSet<Fid> = breaks(&heard).into_iter().collect();
    assert_eq!(told, fids.into_iter().collect::<BTreeSet<_>>());
}

#[test]
fn many_breaks_at_once_share_messages() {
    let cell = Cell::new(25);
    let (a, b) = (cell.client(1), cell.client(2));
    let fids: Vec<Fid> = (0..40).map(|n| a.create(cell.root(), &format!("f{n}")).unwrap().fid).collect();
    b.ask(fs::InlineBulkStatus { fids: fs::Fids::first_of(fids.iter().copied()) }).unwrap();
    b.heard();
    let status = rig_mode(0o600);
    let changes: Vec<_> = fids.iter().map(|fid| a.begin(fs::StoreStatus { fid: *fid, status })).collect();
    cell.sim.run_for(Duration::from_secs(5));
    assert!(changes.iter().all(|change| matches!(&*change.lock().unwrap(), Some(Ok(_)))));
    let heard = b.heard();
    let told: BTreeSet<Fid> = breaks(&heard).into_iter().collect();
    assert_eq!(told.len(), 40);
    assert!(heard.len() < 40, "{} messages for 40 breaks", heard.len());
}

#[test]
fn a_restarted_server_resets_its_clients() {
    let mut cell = Cell::new(26);
    let (a, b, fid) = two_readers(&cell);
    cell.restart();
    // The first call may find the old connection dead.
    let status = a.ask_anew(fs::FetchStatus { fid }, 10).unwrap();
    assert_eq!(status.status.length, 3);
    assert_eq!(a.heard(), MODERN);
    assert_eq!(b.heard(), []);
    b.ask_anew(fs::FetchStatus { fid }, 10).unwrap();
    assert_eq!(b.heard(), MODERN);
    a.store(fid, 0, b"after").unwrap();
    assert_eq!(b.heard(), [Heard::Break(vec![fid])]);
}

#[test]
fn acknowledged_changes_outlive_the_server() {
    let mut cell = Cell::new(27);
    let client = cell.client(1);
    let fid = client.create(cell.root(), "kept").unwrap().fid;
    let data: Vec<u8> = (0..400_000u32).map(|n| n as u8).collect();
    client.store(fid, 0, &data).unwrap();
    cell.restart();
    client.ask_anew(fs::GetTime {}, 10).unwrap();
    let client = cell.client(2);
    assert_eq!(client.read(fid), data);
}

#[test]
fn old_clients_are_asked_in_their_own_words() {
    let cell = Cell::new(28);
    let address = |last: u8| SocketAddr::from(([10, 0, 0, last], 7001));
    let old = cell.client_at(address(50), Uuid([50; 16]), Manner::Old);
    let nameless = cell.client_at(address(51), Uuid([51; 16]), Manner::Nameless);
    let missing = Fid { vnode: afs_wire::ids::VnodeId(900), ..cell.root() };
    old.fetch_status(cell.root()).unwrap();
    assert_eq!(old.heard(), [Heard::WhoAreYou, Heard::Reset(SERVER_UUID)]);
    nameless.fetch_status(cell.root()).unwrap();
    assert_eq!(nameless.heard(), [Heard::OldReset]);
    for client in [&old, &nameless] {
        // Volume codes are the same for all; error numbers are Linux ones for clients that know no others.
        assert_eq!(client.refusal(fs::FetchStatus { fid: missing }), AbortCode::VNOVNODE);
        let refused = client.remove(cell.root(), "nothing").unwrap_err();
        assert_eq!(refused.abort_code(), Some(AbortCode(2)));
    }
    let modern = cell.client(1);
    modern.create(cell.root(), "f").unwrap();
    for client in [&old, &nameless] {
        assert_eq!(client.heard(), [Heard::Break(vec![cell.root()])]);
    }
}

#[test]
fn a_client_that_cannot_be_called_is_served_once() {
    let cell = Cell::new(29);
    let address = SocketAddr::from(([10, 0, 0, 60], 7001));
    let deaf = cell.client_at(address, Uuid([60; 16]), Manner::Deaf);
    deaf.fetch_status(cell.root()).unwrap();
    let refused = deaf.fetch_status(cell.root()).unwrap_err();
    assert_eq!(refused.abort_code(), Some(AbortCode::RX_CALL_DEAD));
    // Other clients are not affected.
    let client = cell.client(1);
    let before = cell.sim.now();
    client.create(cell.root(), "f").unwrap();
    assert!(cell.sim.now() - before < Duration::from_secs(1));
}

#[test]
fn a_client_keeps_its_promises_when_its_port_changes() {
    let cell = Cell::new(30);
    let (a, b, fid) = two_readers(&cell);
    // Address translation has given the client another port; the old one is dead.
    let (world, node, uuid, old) = (cell.world(), b.node, Uuid([2; 16]), b.address);
    drop(b);
    let moved = Client::on(world, node, SocketAddr::new(old.ip(), 40_000), uuid, Manner::Modern);
    moved.fetch_status(cell.root()).unwrap();
    assert_eq!(moved.heard(), [Heard::TellMe], "known, so not reset");
    a.store(fid, 0, b"new").unwrap();
    assert_eq!(moved.heard(), [Heard::Break(vec![fid])]);
    assert_eq!(cell.files().clients().hosts().len(), 2);
}

#[test]
fn another_client_at_a_known_address_is_a_stranger() {
    let cell = Cell::new(31);
    let (a, b, fid) = two_readers(&cell);
    let address = b.address;
    let node = b.node;
    drop(b);
    let stranger = Client::on(cell.world(), node, address, Uuid([99; 16]), Manner::Modern);
    stranger.fetch_status(cell.root()).unwrap();
    assert_eq!(stranger.heard(), MODERN);
    a.store(fid, 0, b"new").unwrap();
    assert_eq!(stranger.heard(), [], "it was promised nothing about this file");
}

#[test]
fn promises_can_be_given_up() {
    let cell = Cell::new(32);
    let (a, b, fid) = two_readers(&cell);
    let fids = fs::Fids::first_of([fid]);
    let both = fs::Promises::first_of([fs::CallBack::NONE, fs::CallBack::NONE]);
    let too_many = fs::GiveUpCallBacks { fids: fids.clone(), callbacks: both };
    assert_eq!(b.refusal(too_many), Errno::EINVAL.to_uae());
    cell.sim.run_for(Duration::from_secs(60));
    b.ask(fs::GiveUpCallBacks { fids, callbacks: fs::Promises::new() }).unwrap();
    a.store(fid, 0, b"new").unwrap();
    assert_eq!(b.heard(), []);
    b.fetch_status(fid).unwrap();
    b.ask(fs::GiveUpAllCallBacks {}).unwrap();
    a.store(fid, 0, b"newer").unwrap();
    assert_eq!(b.heard(), []);
    assert_eq!(cell.files().clients().callbacks().len(), 2, "the other client's");
}

#[test]
fn over_the_bound_old_promises_are_taken_back_and_said_so() {
    let limits = FileServerLimits { promises: 16 * 4, ..FileServerLimits::default() };
    let cell = Cell::with(33, limits, "rlidwka");
    let client = cell.client(1);
    let mut held = BTreeSet::new();
    for n in 0..300 {
        let fid = client.create(cell.root(), &format!("f{n}")).unwrap().fid;
        held.insert(fid);
        for broken in client.heard() {
            if let Heard::Break(fids) = broken {
                fids.iter().for_each(|fid| assert!(held.remove(fid)));
            }
        }
        let callbacks = cell.files().clients().callbacks();
        assert!(callbacks.len() <= 16 * 4 + 1, "{}", callbacks.len());
    }
    // The server still has the promises on which the client relies.
    let host = cell.files().clients().hosts().by_peer(client.address).unwrap();
    for fid in &held {
        assert!(cell.files().clients().callbacks().holds(*fid, host.id()), "{fid}");
    }
}

#[test]
fn silent_hosts_are_probed_and_then_forgotten() {
    let cell = Cell::new(34);
    let (a, b, _) = two_readers(&cell);
    cell.sim.run_for(Duration::from_secs(25 * 60));
    assert!(a.heard().contains(&Heard::Probe) && b.heard().contains(&Heard::Probe));
    cell.sim.cut(cell.server, b.node);
    cell.sim.run_for(Duration::from_secs(10 * 60));
    let host = cell.files().clients().hosts().by_peer(b.address).unwrap();
    assert!(host.is_down());
    drop(host);
    cell.sim.run_for(Duration::from_secs(4 * 3600));
    assert!(cell.files().clients().hosts().is_empty());
    assert!(cell.files().clients().callbacks().is_empty());
    assert!(a.heard().contains(&Heard::Reset(SERVER_UUID)));
}

#[test]
fn one_question_at_first_contact_however_many_calls() {
    let cell = Cell::new(35);
    let client = cell.client(1);
    let calls: Vec<_> = (0..4).map(|_| client.begin(fs::FetchStatus { fid: cell.root() })).collect();
    cell.sim.run_for(Duration::from_secs(5));
    for call in calls {
        assert!(matches!(&*call.lock().unwrap(), Some(Ok(_))));
    }
    assert_eq!(client.heard(), MODERN);
}

#[test]
fn a_client_lost_in_the_middle_of_a_store_harms_nobody() {
    let cell = Cell::new(36);
    let (a, b, fid) = two_readers(&cell);
    let store = fs::StoreData64 {
        fid,
        status: fs::SetStatus::default(),
        position: 0,
        length: 1 << 30,
        file_length: 1 << 30,
    };
    let lost = b.begin(store);
    cell.sim.run_for(Duration::from_millis(50));
    cell.sim.crash(b.node);
    drop(lost);
    a.store(fid, 0, b"new").unwrap();
    assert_eq!(a.read(fid), b"new");
    cell.sim.run_for(Duration::from_secs(300));
    assert_eq!(a.read(fid), b"new");
    let answer: Result<_, CallError> = a.fetch_status(fid);
    assert_eq!(answer.unwrap().status.length, 3);
}
