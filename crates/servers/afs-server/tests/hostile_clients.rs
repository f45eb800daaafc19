//! Clients that send much and reply little: neither new clients nor clients that make changes suffer from
//! them.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::net::SocketAddr;
use std::time::Duration;

use afs_rpc::CallError;
use afs_server::FileServerLimits;
use afs_wire::error::AbortCode;
use afs_wire::fs::CallBack;
use afs_wire::ids::{Fid, Uuid};
use rig::{Cell, Claim, Client, Heard, Manner};

const IGNORED: Duration = Duration::from_secs(100_000);

/// A client by number: one address for each 200, and a name of its own.
fn numbered(cell: &Cell, number: u16, manner: Manner) -> Client {
    let address = SocketAddr::from(([10, 0, 1 + (number / 200) as u8, (number % 200) as u8], 7001));
    cell.client_at(address, name_of(number), manner)
}

fn name_of(number: u16) -> Uuid {
    let mut name = [9; 16];
    name[..2].copy_from_slice(&number.to_be_bytes());
    Uuid(name)
}

fn small_table(seed: u64, hosts: usize) -> Cell {
    Cell::with(seed, FileServerLimits { hosts, ..FileServerLimits::default() }, "rlidwka")
}

fn files(client: &Client, cell: &Cell, count: usize) -> Vec<Fid> {
    (0..count).map(|n| client.create(cell.root(), &format!("f{n}")).unwrap().fid).collect()
}

#[test]
fn callers_that_do_not_say_who_they_are_take_no_place_and_get_no_promise() {
    let cell = small_table(221, 8);
    for number in 0..12 {
        let deaf = numbered(&cell, number, Manner::Deaf);
        let reply = deaf.fetch_status(cell.root()).unwrap();
        assert_eq!(reply.callback, CallBack::NONE);
    }
    assert!(cell.files().clients().hosts().is_empty());
    assert!(cell.files().clients().callbacks().is_empty());
    cell.client(1).fetch_status(cell.root()).unwrap();
}

/// There are 4096 places for running calls, three quarters of them for anonymous callers, 256 for one
/// address.
#[test]
fn callers_that_do_not_reply_to_whoareyou_delay_no_other() {
    let cell = Cell::new(226);
    let alive = cell.client(2);
    alive.fetch_status(cell.root()).unwrap();
    for host in 1..=14 {
        let address = |port| SocketAddr::from(([10, 0, 9, host], port));
        let first = cell.client_at(address(7001), name_of(0), Manner::Mute);
        for port in 0..60 {
            let mute = Client::on(cell.world(), first.node, address(8000 + port), name_of(0), Manner::Mute);
            for _ in 0..4 {
                mute.begin(afs_wire::fs::FetchStatus { fid: cell.root() });
            }
        }
    }
    cell.sim.run_for(Duration::from_millis(500));
    for (client, how) in [(alive, "known"), (cell.client(1), "new")] {
        let before = cell.sim.now();
        client.fetch_status(cell.root()).unwrap();
        let took = cell.sim.now() - before;
        assert!(took < Duration::from_secs(1), "a {how} client waited {took:?}");
    }
}

/// One address has 128 places for calls that wait for their clients.
#[test]
fn an_evicted_call_is_refused_and_its_client_still_gets_its_missed_breaks() {
    let cell = Cell::new(231);
    let (writer, away) = (cell.client(1), cell.client(2));
    let fid = files(&writer, &cell, 1)[0];
    away.fetch_status(fid).unwrap();
    let too_late = Duration::from_secs(6);
    away.answer_breaks_after(too_late);
    writer.store(fid, 0, b"new").unwrap();
    cell.sim.run_for(too_late);
    let displaced = away.begin(afs_wire::fs::FetchStatus { fid });
    cell.sim.run_for(Duration::from_millis(200));
    let address = |port| SocketAddr::new(away.address.ip(), port);
    let mutes: Vec<_> = (0..33)
        .map(|port| Client::on(cell.world(), away.node, address(8000 + port), name_of(port), Manner::Mute))
        .collect();
    for mute in mutes.iter().cycle().take(132) {
        mute.begin(afs_wire::fs::FetchStatus { fid });
    }
    cell.sim.run_for(Duration::from_millis(500));
    let refusal = displaced.lock().unwrap().take();
    assert!(matches!(refusal, Some(Err(CallError::Abort(AbortCode::VBUSY)))), "{refusal:?}");

    cell.sim.run_for(too_late);
    away.answer_breaks_after(Duration::ZERO);
    drop(away.heard());
    away.fetch_status(fid).unwrap();
    let heard = away.heard();
    assert!(heard.contains(&Heard::Break(vec![fid])), "{heard:?}");
}

#[test]
fn clients_without_promises_make_room_for_new_ones() {
    let cell = small_table(222, 8);
    for number in 0..30 {
        let client = numbered(&cell, number, Manner::Modern);
        client.ask(afs_wire::fs::GetTime {}).unwrap();
    }
    assert!(cell.files().clients().hosts().len() <= 8);
    let client = cell.client(1);
    client.fetch_status(cell.root()).unwrap();
    client.fetch_status(cell.root()).unwrap();
}

#[test]
fn clients_with_a_proven_name_have_room_that_strangers_cannot_take() {
    let cell = small_table(223, 8);
    let strangers: Vec<Client> = (0..12).map(|n| numbered(&cell, n, Manner::Modern)).collect();
    let refused = strangers.iter().filter(|client| client.fetch_status(cell.root()).is_err()).count();
    assert_eq!(refused, 6, "all others hold promises, and a quarter of the table is not for strangers");
    let alice = cell.client(1).acting_as(&Claim::of("alice"));
    alice.fetch_status(cell.root()).unwrap();
    // A client from before the flood continues.
    strangers[0].fetch_status(cell.root()).unwrap();
}

#[test]
fn one_address_takes_a_bounded_part_of_the_table() {
    let cell = small_table(224, 256);
    let address = |port| SocketAddr::from(([10, 0, 0, 66], port));
    let first = cell.client_at(address(7001), name_of(1), Manner::Modern);
    let mut refused = 0;
    first.fetch_status(cell.root()).unwrap();
    for n in 0..40 {
        let next = Client::on(cell.world(), first.node, address(8000 + n), name_of(2 + n), Manner::Modern);
        match next.fetch_status(cell.root()) {
            Err(error) => {
                assert_eq!(error.abort_code(), Some(AbortCode::VBUSY));
                refused += 1;
            }
            Ok(_) => assert_eq!(refused, 0),
        }
    }
    assert!(refused > 0);
    numbered(&cell, 9, Manner::Modern).fetch_status(cell.root()).unwrap();
}

/// An attacker has addresses of its own, and takes promises under as many names at each as it may.
#[test]
fn clients_with_promises_give_way_to_one_of_an_address_with_fewer() {
    let cell = small_table(226, 64);
    let mut held = Vec::new();
    for host in 0..3 {
        let address = |port| SocketAddr::from(([10, 0, 9, host], port));
        let first = cell.client_at(address(7001), name_of(1000 * u16::from(host) + 1), Manner::Modern);
        for n in 0..16 {
            let name = name_of(1000 * u16::from(host) + 2 + n);
            let next = Client::on(cell.world(), first.node, address(8000 + n), name, Manner::Modern);
            next.fetch_status(cell.root()).unwrap();
            held.push(next);
        }
    }
    held.iter().for_each(|client| drop(client.heard()));
    let honest = numbered(&cell, 9, Manner::Modern);
    honest.fetch_status(cell.root()).unwrap();
    let resets = |client: &&Client| client.heard().iter().any(|heard| matches!(heard, Heard::Reset(_)));
    let told = held.iter().filter(resets).count();
    assert_eq!(told, 1, "the client that was removed is reset");
    honest.fetch_status(cell.root()).unwrap();
    assert_eq!(numbered(&cell, 10, Manner::Modern).fetch_status(cell.root()).map(drop), Ok(()));
    let more =
        Client::on(cell.world(), held[0].node, ([10, 0, 9, 0], 9999).into(), name_of(5000), Manner::Modern);
    assert!(more.fetch_status(cell.root()).is_err(), "an address with most takes no place of another");
}

/// How long a writer waits for each of several changes of a file that a client fetches again after each.
fn delays(cell: &Cell, writer: &Client, fid: Fid, asker: impl Fn(u16), changes: u16) -> Vec<Duration> {
    let one = |n| {
        asker(n);
        let before = cell.sim.now();
        writer.store(fid, 0, b"new").unwrap();
        cell.sim.now() - before
    };
    (0..changes).map(one).collect()
}

#[test]
fn a_client_that_takes_promises_and_ignores_breaks_delays_few_changes() {
    let cell = Cell::new(225);
    let (writer, hostile) = (cell.client(1), cell.client(2));
    let fid = files(&writer, &cell, 1)[0];
    hostile.answer_breaks_after(IGNORED);
    let delays = delays(&cell, &writer, fid, |_| drop(hostile.fetch_status(fid)), 20);
    let slow = delays.iter().filter(|delay| **delay > Duration::from_millis(500)).count();
    assert!(slow <= 1, "{delays:?}");
    // However long it goes on: an hour of changes, one every ten seconds.
    let mut waited = Duration::ZERO;
    for _ in 0..360 {
        cell.sim.run_for(Duration::from_secs(10));
        drop(hostile.fetch_status(fid));
        let before = cell.sim.now();
        writer.store(fid, 0, b"new").unwrap();
        waited += cell.sim.now() - before;
    }
    assert!(waited < Duration::from_secs(25), "{waited:?} of an hour");
}

#[test]
fn names_and_ports_made_up_at_one_address_do_not_delay_more_changes() {
    let cell = Cell::new(226);
    let (writer, first) = (cell.client(1), cell.client(2));
    let fid = files(&writer, &cell, 1)[0];
    let ask = |n: u16| {
        let address = SocketAddr::new(first.address.ip(), 20_000 + n);
        let next = Client::on(cell.world(), first.node, address, name_of(n), Manner::Modern);
        next.answer_breaks_after(IGNORED);
        drop(next.fetch_status(fid));
    };
    let delays = delays(&cell, &writer, fid, ask, 20);
    let slow = delays.iter().filter(|delay| **delay > Duration::from_millis(500)).count();
    assert!(slow <= 2, "{delays:?}");
}

/// The second change comes three seconds after the first: it waits for the rest of the time-out, not for as
/// long again.
#[test]
fn changes_that_wait_for_a_silent_client_end_together() {
    let cell = Cell::new(228);
    let (writer, hostile) = (cell.client(1), cell.client(2));
    let files = files(&writer, &cell, 3);
    hostile.answer_breaks_after(IGNORED);
    files.iter().for_each(|fid| drop(hostile.fetch_status(*fid)));
    let before = cell.sim.now();
    let mut stores = Vec::new();
    for fid in files {
        stores.push(writer.begin_store(fid, b"new".to_vec()));
        cell.sim.run_for(Duration::from_millis(1500));
    }
    let all_done = || stores.iter().all(|store| store.lock().unwrap().is_some());
    cell.sim.run_until(Duration::from_secs(60), all_done).unwrap();
    let took = cell.sim.now() - before;
    assert!(took < Duration::from_millis(4600), "{took:?}");
}

/// Each name has the promise on a file of its own, and each file changes while another one is waited for.
#[test]
fn names_made_up_at_one_address_are_given_up_together() {
    let cell = Cell::new(230);
    let (writer, first) = (cell.client(1), cell.client(2));
    let files = files(&writer, &cell, 3);
    for (n, fid) in files.iter().enumerate() {
        let address = SocketAddr::new(first.address.ip(), 20_000 + n as u16);
        let name = Client::on(cell.world(), first.node, address, name_of(n as u16), Manner::Modern);
        name.answer_breaks_after(IGNORED);
        name.fetch_status(*fid).unwrap();
    }
    let before = cell.sim.now();
    let mut stores = Vec::new();
    for fid in files {
        stores.push(writer.begin_store(fid, b"new".to_vec()));
        cell.sim.run_for(Duration::from_millis(1400));
    }
    let all_done = || stores.iter().all(|store| store.lock().unwrap().is_some());
    cell.sim.run_until(Duration::from_secs(60), all_done).unwrap();
    let took = cell.sim.now() - before;
    assert!(took < Duration::from_millis(4600), "{took:?}");
}

#[test]
fn a_client_that_delays_a_change_gets_no_promise_meanwhile_nor_do_others_at_its_address() {
    let cell = Cell::new(229);
    let (writer, hostile, other) = (cell.client(1), cell.client(2), cell.client(3));
    let files = files(&writer, &cell, 2);
    let address = SocketAddr::new(hostile.address.ip(), 20_000);
    let neighbour = Client::on(cell.world(), hostile.node, address, name_of(1), Manner::Modern);
    hostile.answer_breaks_after(Duration::from_secs(3));
    hostile.fetch_status(files[0]).unwrap();
    let store = writer.begin_store(files[0], b"new".to_vec());
    cell.sim.run_for(Duration::from_secs(2));
    for client in [&hostile, &neighbour] {
        assert_eq!(client.fetch_status(files[1]).unwrap().callback, CallBack::NONE);
    }
    assert_ne!(other.fetch_status(files[1]).unwrap().callback, CallBack::NONE);
    cell.sim.run_for(Duration::from_secs(2));
    assert!(store.lock().unwrap().is_some());
    assert_ne!(neighbour.fetch_status(files[1]).unwrap().callback, CallBack::NONE);
}

#[test]
fn a_client_that_missed_a_break_is_promised_things_again_later() {
    let cell = Cell::new(227);
    let (writer, client) = (cell.client(1), cell.client(2));
    let fid = files(&writer, &cell, 1)[0];
    client.fetch_status(fid).unwrap();
    client.answer_breaks_after(IGNORED);
    writer.store(fid, 0, b"new").unwrap();
    client.answer_breaks_after(Duration::ZERO);
    assert_eq!(client.fetch_status(fid).unwrap().callback, CallBack::NONE);
    cell.sim.run_for(Duration::from_secs(60));
    assert_ne!(client.fetch_status(fid).unwrap().callback, CallBack::NONE);
    client.heard();
    writer.store(fid, 0, b"newer").unwrap();
    assert_eq!(client.heard(), [Heard::Break(vec![fid])]);
}

#[test]
fn parallel_writers_do_not_wait_for_each_others_messages() {
    let cell = Cell::new(228);
    let (writer, slow) = (cell.client(1), cell.client(2));
    let fids = files(&writer, &cell, 12);
    for fid in &fids {
        slow.fetch_status(*fid).unwrap();
    }
    slow.answer_breaks_after(Duration::from_millis(3900));
    let stores: Vec<_> = fids.iter().map(|fid| writer.begin_store(*fid, b"new".to_vec())).collect();
    cell.sim.run_for(Duration::from_millis(4500));
    let answered = stores.iter().filter(|store| matches!(&*store.lock().unwrap(), Some(Ok(_)))).count();
    assert_eq!(answered, fids.len());
}

#[test]
fn a_client_that_answers_at_the_last_moment_delays_few_changes() {
    let cell = Cell::new(229);
    let (writer, hostile) = (cell.client(1), cell.client(2));
    let fid = files(&writer, &cell, 1)[0];
    hostile.answer_breaks_after(Duration::from_millis(3900));
    let delays = delays(&cell, &writer, fid, |_| drop(hostile.fetch_status(fid)), 20);
    let slow = delays.iter().filter(|delay| **delay > Duration::from_millis(500)).count();
    assert!(slow <= 1, "{delays:?}");
}
