//! How leases end: without use, by an orderly stop, by a loss, by a power failure; and what others know of a directory when it
//! is lent.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::net::SocketAddr;
use std::slice::from_ref;
use std::time::Duration;

use afs_server::FileServerLimits;
use afs_server::PartitionState;
use afs_server::callbacks::{Callbacks, Grant};
use afs_server::hosts::HostId;
use afs_sim::crash::{Rng, seeds};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, CallBack, ChangeList};
use afs_wire::ids::{Fid, Uniquifier, Uuid, VnodeId};
use rig::leasing::*;
use rig::{Cell, Client, Heard, Manner};

const MINUTE: Duration = Duration::from_secs(60);

fn made(client: &Client, list: ChangeList) {
    assert_eq!(client.ask(list).unwrap().code, AbortCode::OK);
}

/// The number under which the server knows the one client that has a promise on an object.
fn host_with(callbacks: &Callbacks, fid: Fid) -> HostId {
    (0..1000).map(HostId).find(|host| callbacks.holds(fid, *host)).unwrap()
}

#[test]
fn a_lease_without_a_list_for_five_minutes_is_recalled() {
    let cell = Cell::new(1);
    let (a, dir) = (cell.client(1), cell.root());
    let lease = take(&a, dir);
    let create = |n: usize| [created(dir, lease.fids[n], &format!("n{n}"), b"x")];
    a.heard();
    cell.sim.run_for(4 * MINUTE);
    made(&a, list(dir, lease.lease, 1, &create(0)));
    cell.sim.run_for(4 * MINUTE);
    made(&a, list(dir, lease.lease, 2, &create(1)));
    assert_eq!(a.heard(), [], "it was used");
    let sent = send_when_recalled(&a, vec![list(dir, lease.lease, 3, &create(2))]);
    cell.sim.run_for(7 * MINUTE);
    assert_eq!(a.heard(), [Heard::Recall(dir, lease.lease)]);
    assert!(matches!(sent.lock().unwrap()[..], [Ok(())]));
    refused(a.ask(list(dir, lease.lease, 4, &create(3))), ESTALE);
    take(&a, dir);
}

#[test]
fn an_orderly_stop_recalls_all_leases_and_lends_nothing_more() {
    let mut cell = Cell::new(2);
    let (a, b, root) = (cell.client(1), cell.client(2), cell.root());
    let of_b = b.make_dir(root, "of b").unwrap().fid;
    let (held, other) = (take(&a, root), take(&b, of_b));
    let create = created(root, held.fids[0], "f", b"x");
    let sent = send_when_recalled(&a, vec![list(root, held.lease, 1, from_ref(&create))]);
    b.heard();
    cell.recall_leases();
    assert!(matches!(sent.lock().unwrap()[..], [Ok(())]));
    assert_eq!(b.heard(), [Heard::Recall(of_b, other.lease)]);
    earn(&a, root);
    refused(a.ask(ask_for(root)), Errno::EAGAIN);
    cell.restart();
    assert_eq!(a.read(held.fids[0]), b"x");
    take(&a, root);
}

/// It knows everything of the lease, and says that it is the client; so does another process on the client's machine.
#[test]
fn a_third_address_in_the_holders_name_has_nothing_of_its_lease() {
    let cell = Cell::new(3);
    let (a, dir) = (cell.client(1), cell.root());
    let lease = take(&a, dir);
    let name = Uuid([1; 16]);
    let third = cell.client_at(SocketAddr::from(([10, 0, 0, 66], 7001)), name, Manner::Modern);
    let beside = SocketAddr::new(a.address.ip(), 40_000);
    let neighbour = Client::on(cell.world(), a.node, beside, name, Manner::Modern);
    a.heard();
    for other in [&third, &neighbour] {
        let forged = created(dir, lease.fids[0], "forged", b"x");
        refused(other.ask(list(dir, lease.lease, 1, from_ref(&forged))), ESTALE);
        refused(other.ask(fs::ReturnLease { dir, lease: lease.lease }), ESTALE);
        refused(other.ask(ask_for(dir)), Errno::EAGAIN);
    }
    assert!(!a.heard().contains(&Heard::Recall(dir, lease.lease)));
    made(&a, list(dir, lease.lease, 1, &[created(dir, lease.fids[0], "own", b"y")]));
    assert!(!entries(&third, dir).contains_key("forged"));
    assert_eq!(third.read(lease.fids[0]), b"y");
}

#[test]
fn a_power_failure_within_a_list_leaves_all_of_it_or_nothing() {
    let mut found = [0, 0];
    for seed in seeds(30) {
        let mut cell = Cell::new(600 + seed);
        let (a, dir) = (cell.client(1), cell.root());
        a.create(dir, "old").unwrap();
        let lease = take(&a, dir);
        let before = entries(&a, dir);
        let (file, sub, inner) = (lease.fids[0], lease.fids[8], lease.fids[1]);
        let changes = [
            created(dir, file, "f", b"one"),
            made_dir(dir, sub, "d"),
            created(sub, inner, "inner", b"two"),
            removed(dir, "old"),
            stored(file, b"three"),
        ];
        let all = list(dir, lease.lease, 1, &changes);
        // At the write, at the sync, or behind it.
        cell.fail_after(1 + seed % 3);
        let replied = a.ask(all.clone()).is_ok();
        if !replied {
            let states = cell.partitions().states();
            let is_failing = |state: &PartitionState| matches!(state, PartitionState::Failing(_));
            assert!(states.values().all(is_failing), "seed {seed}: {states:?}");
        }
        cell.restart_after_power_failure(&mut Rng(seed));
        let again = a.ask(all);
        let after = entries(&a, dir);
        match again {
            Ok(again) => {
                assert_eq!(again.done.len(), changes.len(), "seed {seed}");
                assert!(after != before, "seed {seed}: it is said to be made");
            }
            refusal => {
                refused(refusal, ESTALE);
                assert!(after == before, "seed {seed}: it is said not to be made");
            }
        }
        let mut expected = before.clone();
        if after != before {
            expected.remove("old");
            expected.extend([("f".to_owned(), file), ("d".to_owned(), sub)]);
            assert_eq!(entries(&a, sub).into_values().collect::<Vec<_>>(), [inner], "seed {seed}");
            assert_eq!((a.read(file), a.read(inner)), (b"three".to_vec(), b"two".to_vec()), "seed {seed}");
        }
        assert_eq!(after, expected, "seed {seed}");
        assert!(!replied || after != before, "seed {seed}: what was replied is there");
        found[usize::from(after != before)] += 1;
        // What was lent and not used is others' now, with another uniquifier.
        let again: Vec<Fid> = (0..6).map(|n| a.create(dir, &format!("n{n}")).unwrap().fid).collect();
        assert!(again.iter().all(|fid| !lease.fids.contains(fid)), "seed {seed}");
        assert!(again.iter().all(|fid| lease.fids.iter().any(|lent| lent.vnode == fid.vnode)), "seed {seed}");
    }
    assert!(found.iter().all(|count| *count > 3) || seeds(30).count() < 30, "nothing, or all: {found:?}");
}

#[test]
fn a_client_that_lost_a_lease_hears_that_its_copies_of_what_was_lent_are_void() {
    let cell = Cell::new(4);
    let (a, b, dir) = (cell.client(1), cell.client(2), cell.root());
    let lease = take(&a, dir);
    let sub = lease.fids[8];
    made(&a, list(dir, lease.lease, 1, &[made_dir(dir, sub, "d")]));
    a.fetch_status(sub).unwrap();
    never_answer(&a);
    a.heard();
    // It changes nothing, so no change breaks a promise.
    b.fetch_status(dir).unwrap();
    a.heard();
    refused(a.ask(fs::ReturnLease { dir, lease: lease.lease }), ESTALE);
    let broken: Vec<Fid> = a
        .heard()
        .into_iter()
        .filter_map(|heard| if let Heard::Break(fids) = heard { Some(fids) } else { None })
        .flatten()
        .collect();
    assert!(broken.contains(&dir) && broken.contains(&sub), "{broken:?}");
}

/// A call looks a directory up, then waits for room for a promise; meanwhile others change the directory and lend it.
#[test]
fn a_call_that_waited_gets_no_promise_on_what_was_lent_meanwhile() {
    let limits = FileServerLimits { promises: 16 * 4, ..FileServerLimits::default() };
    let cell = Cell::with(5, limits, "rlidwka");
    let (a, b, slow, root) = (cell.client(1), cell.client(2), cell.client(3), cell.root());
    let dir = a.make_dir(root, "dir").unwrap().fid;
    let own = slow.create(root, "of the slow one").unwrap().fid;
    slow.fetch_status(own).unwrap();
    b.fetch_status(root).unwrap();
    let (callbacks, now) = (cell.files().clients().callbacks(), cell.files().clients().now());
    let host = host_with(callbacks, own);
    // Of objects that do not exist.
    for n in (1..).take_while(|_| !callbacks.is_full(dir)) {
        callbacks.grant(
            Fid { vnode: VnodeId(2 * n), unique: Uniquifier(u32::MAX), ..dir },
            host,
            Grant::Bulk,
            now,
        );
    }
    slow.answer_breaks_after(Duration::from_secs(2));
    let asked = b.begin(fs::FetchStatus { fid: dir });
    cell.sim.run_for(Duration::from_millis(100));
    assert!(asked.lock().unwrap().is_none(), "it waits");
    take(&a, dir);
    assert!(asked.lock().unwrap().is_none(), "it still does");
    cell.sim.run_for(Duration::from_secs(5));
    let reply = asked.lock().unwrap().take().unwrap().unwrap();
    assert_eq!(reply.callback, CallBack::NONE, "the holder decides what is in it");
}

/// As of a call that looked the directory up before the changes, and got its promise after them.
#[test]
fn a_promise_from_before_the_lease_is_broken_with_it() {
    let cell = Cell::new(6);
    let (a, b, dir) = (cell.client(1), cell.client(2), cell.root());
    let own = b.create(dir, "of b").unwrap().fid;
    b.fetch_status(own).unwrap();
    let (callbacks, now) = (cell.files().clients().callbacks(), cell.files().clients().now());
    let host = host_with(callbacks, own);
    earn(&a, dir);
    callbacks.grant(dir, host, Grant::Single, now);
    b.heard();
    a.ask(ask_for(dir)).unwrap();
    assert_eq!(b.heard(), [Heard::Break(vec![dir])]);
    assert!(!callbacks.holds(dir, host));
}
