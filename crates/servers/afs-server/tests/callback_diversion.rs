//! Attackers that use the name of an unauthenticated client: the client's promises stay its own.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::net::SocketAddr;
use std::time::Duration;

use afs_wire::fs;
use afs_wire::ids::{Fid, Uuid};
use rig::{Cell, Client, Heard, Manner, SERVER_UUID};

const VICTIM: Uuid = Uuid([2; 16]);

struct Scene {
    cell: Cell,
    writer: Client,
    victim: Client,
    fid: Fid,
}

/// A file that the victim has read and that another client is about to change.
fn scene(seed: u64) -> Scene {
    let cell = Cell::new(seed);
    let (writer, victim) = (cell.client(1), cell.client(2));
    let fid = writer.create(cell.root(), "f").unwrap().fid;
    writer.store(fid, 0, b"old").unwrap();
    victim.read(fid);
    victim.heard();
    Scene { cell, writer, victim, fid }
}

impl Scene {
    /// A client on another machine with the victim's name.
    fn stranger(&self) -> Client {
        self.cell.client_at(SocketAddr::from(([10, 0, 0, 66], 7001)), VICTIM, Manner::Modern)
    }

    /// Another process on the victim's machine with its name.
    fn neighbour(&self) -> Client {
        let address = SocketAddr::new(self.victim.address.ip(), 40_000);
        Client::on(self.cell.world(), self.victim.node, address, VICTIM, Manner::Modern)
    }

    fn cut(&self, client: &Client) {
        self.cell.sim.cut(self.cell.server, client.node);
        self.cell.sim.cut(client.node, self.cell.server);
    }

    fn mend(&self, client: &Client) {
        self.cell.sim.mend(self.cell.server, client.node);
        self.cell.sim.mend(client.node, self.cell.server);
    }
}

#[test]
fn a_stranger_who_uses_a_clients_name_does_not_get_its_breaks() {
    let scene = scene(201);
    let stranger = scene.stranger();
    stranger.fetch_status(scene.cell.root()).unwrap();
    scene.victim.heard();
    scene.writer.store(scene.fid, 0, b"new").unwrap();
    assert_eq!(scene.victim.heard(), [Heard::Break(vec![scene.fid])]);
    assert!(
        !stranger.heard().contains(&Heard::Break(vec![scene.fid])),
        "it was promised to the client alone"
    );
}

#[test]
fn neither_does_another_process_of_the_same_machine() {
    let scene = scene(202);
    let neighbour = scene.neighbour();
    neighbour.fetch_status(scene.cell.root()).unwrap();
    scene.victim.heard();
    scene.writer.store(scene.fid, 0, b"new").unwrap();
    assert_eq!(scene.victim.heard(), [Heard::Break(vec![scene.fid])]);
}

#[test]
fn a_stranger_gives_nothing_up_in_a_clients_name() {
    let scene = scene(203);
    let stranger = scene.stranger();
    stranger.fetch_status(scene.fid).unwrap();
    scene.cell.sim.run_for(Duration::from_secs(600));
    let fids = fs::Fids::first_of([scene.fid]);
    stranger.ask(fs::GiveUpCallBacks { fids, callbacks: fs::Promises::new() }).unwrap();
    stranger.ask(fs::GiveUpAllCallBacks {}).unwrap();
    scene.victim.heard();
    scene.writer.store(scene.fid, 0, b"new").unwrap();
    assert_eq!(scene.victim.heard(), [Heard::Break(vec![scene.fid])]);
}

#[test]
fn a_change_made_in_a_clients_name_is_told_to_the_client() {
    let scene = scene(204);
    let stranger = scene.stranger();
    stranger.store(scene.fid, 0, b"forged").unwrap();
    assert!(scene.victim.heard().contains(&Heard::Break(vec![scene.fid])));
}

/// An unreachable client cannot be distinguished from one that has moved; it must not rely on anything
/// afterwards.
#[test]
fn a_client_whose_name_was_used_while_it_was_away_forgets_everything_when_it_is_back() {
    let scene = scene(205);
    scene.cut(&scene.victim);
    let stranger = scene.stranger();
    stranger.fetch_status(scene.cell.root()).unwrap();
    scene.writer.store(scene.fid, 0, b"new").unwrap();
    scene.mend(&scene.victim);
    scene.victim.fetch_status(scene.cell.root()).unwrap();
    assert!(scene.victim.heard().contains(&Heard::Reset(SERVER_UUID)));
    scene.victim.read(scene.fid);
    scene.writer.store(scene.fid, 0, b"newer").unwrap();
    assert!(
        scene.victim.heard().contains(&Heard::Break(vec![scene.fid])),
        "what it asked for since is its own"
    );
}

#[test]
fn a_client_with_two_addresses_hears_of_everything_that_it_asked_for_at_either() {
    let scene = scene(206);
    let other = scene.stranger();
    let second = scene.writer.create(scene.cell.root(), "g").unwrap().fid;
    other.read(second);
    scene.victim.heard();
    other.heard();
    scene.writer.store(scene.fid, 0, b"new").unwrap();
    scene.writer.store(second, 0, b"new").unwrap();
    assert_eq!(scene.victim.heard(), [Heard::Break(vec![scene.fid])]);
    assert_eq!(other.heard(), [Heard::Break(vec![second])]);
    // The first address goes away for good, then the second, and the client goes on at a third.
    scene.cut(&scene.victim);
    other.read(second);
    let third = SocketAddr::from(([10, 0, 0, 67], 7001));
    scene.cut(&other);
    let third = scene.cell.client_at(third, VICTIM, Manner::Modern);
    third.fetch_status(scene.cell.root()).unwrap();
    assert!(third.heard().contains(&Heard::Reset(SERVER_UUID)), "some of its promises cannot reach it here");
}
