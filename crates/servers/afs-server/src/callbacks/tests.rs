use std::collections::{BTreeMap, BTreeSet};

use afs_wire::ids::{Uniquifier, VnodeId};

use super::*;

const A: HostId = HostId(0);
const B: HostId = HostId(1);
const C: HostId = HostId(7);

fn fid(vnode: u32) -> Fid {
    Fid { volume: VolumeId(1), vnode: VnodeId(vnode), unique: Uniquifier(1) }
}

fn table() -> Callbacks {
    Callbacks::new(1 << 20, 99)
}

#[test]
fn a_change_is_told_to_everybody_else() {
    let callbacks = table();
    for host in [A, B, C] {
        callbacks.grant(fid(2), host, Grant::Single, 0);
    }
    callbacks.grant(fid(4), B, Grant::Single, 0);
    let mut told = callbacks.start_break(fid(2), Some(B));
    told.sort();
    assert_eq!(told, [A, C]);
    assert!(!callbacks.holds(fid(2), A) && callbacks.holds(fid(2), B) && callbacks.holds(fid(4), B));
    callbacks.broken(fid(2), A);
    callbacks.broken(fid(2), C);
    assert_eq!(callbacks.len(), 2);
}

#[test]
fn a_second_change_waits_for_the_first_break_too() {
    let callbacks = table();
    callbacks.grant(fid(2), A, Grant::Single, 0);
    assert_eq!(callbacks.start_break(fid(2), Some(B)), [A]);
    assert_eq!(callbacks.start_break(fid(2), Some(C)), [A]);
    callbacks.broken(fid(2), A);
    assert_eq!(callbacks.start_break(fid(2), None), [A]);
    callbacks.broken(fid(2), A);
    callbacks.broken(fid(2), A);
    assert_eq!(callbacks.start_break(fid(2), None), []);
    assert!(callbacks.is_empty());
}

#[test]
fn a_promise_given_during_a_break_survives_its_answer() {
    let callbacks = table();
    callbacks.grant(fid(2), A, Grant::Single, 0);
    callbacks.start_break(fid(2), None);
    callbacks.grant(fid(2), A, Grant::Single, 0);
    callbacks.broken(fid(2), A);
    assert!(callbacks.holds(fid(2), A));
}

#[test]
fn undelivered_breaks_are_owed() {
    let callbacks = table();
    for vnode in [2, 4, 6] {
        callbacks.grant(fid(vnode), A, Grant::Single, 0);
    }
    for vnode in [2, 6] {
        callbacks.start_break(fid(vnode), None);
        callbacks.delay(fid(vnode), A);
    }
    let owed: BTreeSet<Fid> = callbacks.take_delayed(A, 50).into_iter().collect();
    assert_eq!(owed, BTreeSet::from([fid(2), fid(6)]));
    for fid in owed {
        callbacks.broken(fid, A);
    }
    assert!(callbacks.take_delayed(A, 50).is_empty());
    assert_eq!(callbacks.len(), 1);
}

#[test]
fn an_owed_break_stays_owed_when_the_promise_is_given_again() {
    let callbacks = table();
    callbacks.grant(fid(2), A, Grant::Single, 0);
    callbacks.start_break(fid(2), None);
    callbacks.delay(fid(2), A);
    callbacks.grant(fid(2), A, Grant::Single, 0);
    assert!(!callbacks.holds(fid(2), A));
    assert_eq!(callbacks.take_delayed(A, 50), [fid(2)]);
    callbacks.broken(fid(2), A);
    callbacks.grant(fid(2), A, Grant::Single, 0);
    assert!(callbacks.holds(fid(2), A));
}

#[test]
fn a_promise_that_was_given_a_moment_ago_is_not_given_up() {
    let callbacks = table();
    let now = 1 << 33;
    callbacks.grant(fid(2), A, Grant::Single, now);
    callbacks.give_up(fid(2), A, now + 59);
    assert!(callbacks.holds(fid(2), A));
    callbacks.give_up(fid(2), A, now + 60);
    assert!(!callbacks.holds(fid(2), A));
}

#[test]
fn promises_go_with_their_object_their_host_and_their_volume() {
    let callbacks = table();
    for vnode in 2..100 {
        for host in [A, B] {
            callbacks.grant(fid(vnode), host, Grant::Single, 0);
        }
    }
    callbacks.forget_file(fid(2));
    assert_eq!(callbacks.len(), 194);
    callbacks.give_up(fid(3), A, 60);
    callbacks.give_up(fid(3), C, 60);
    assert_eq!(callbacks.len(), 193);
    callbacks.forget_host(A);
    assert_eq!(callbacks.len(), 97);
    let other = Fid::root(VolumeId(2));
    callbacks.grant(other, A, Grant::Single, 0);
    assert_eq!(callbacks.forget_volume(VolumeId(1)), [B]);
    assert_eq!((callbacks.len(), callbacks.files()), (1, 1));
    assert!(callbacks.has_promises(A) && !callbacks.has_promises(B));
}

#[test]
fn promises_expire_and_renewed_ones_do_not() {
    let callbacks = table();
    let told = u64::from(callbacks.grant(fid(2), A, Grant::Single, 0));
    callbacks.grant(fid(4), A, Grant::Single, 0);
    callbacks.expire(told);
    assert_eq!(callbacks.len(), 2, "the server remembers at least as long as it told");
    callbacks.grant(fid(4), A, Grant::Single, told);
    callbacks.expire(told + 400);
    assert!(!callbacks.holds(fid(2), A) && callbacks.holds(fid(4), A));
    callbacks.expire(told + 100_000_000);
    assert!(callbacks.is_empty());
    callbacks.grant(fid(2), A, Grant::Single, told + 100_000_001);
    callbacks.expire(told + 100_000_002);
    assert_eq!(callbacks.len(), 1);
}

#[test]
fn over_the_bound_the_oldest_go_first() {
    let callbacks = Callbacks::new(16 * 10, 3);
    let fids = of_one_shard(11);
    for (n, fid) in fids.iter().enumerate().take(10) {
        assert!(!callbacks.is_full(*fid));
        callbacks.grant(*fid, A, Grant::Single, 1000 * n as u64);
    }
    assert!(callbacks.is_full(fids[10]));
    let reclaimed = callbacks.start_reclaim(fids[10], 9000, 2);
    assert_eq!(reclaimed, [(fids[0], A), (fids[1], A)]);
    for (fid, host) in reclaimed {
        callbacks.broken(fid, host);
    }
    assert!(!callbacks.is_full(fids[10]));
}

/// Objects of one shard.
fn of_one_shard(count: usize) -> Vec<Fid> {
    let is_of_it = |f: &Fid| (records::hash_fid(0, *f) as usize).is_multiple_of(SHARDS);
    (2..).map(fid).filter(is_of_it).take(count).collect()
}

#[test]
fn where_clients_do_not_reply_no_promise_more_than_the_bound_is_given() {
    let callbacks = Callbacks::new(16 * 10, 3);
    let fids = of_one_shard(12);
    for fid in &fids[..10] {
        assert!(callbacks.grant_if_room(*fid, A, Grant::Single, 0).is_some());
        callbacks.start_break(*fid, None);
        callbacks.delay(*fid, A);
    }
    assert!(callbacks.start_reclaim(fids[10], 0, 64).is_empty(), "all of them are owed");
    assert_eq!(callbacks.grant_if_room(fids[10], B, Grant::Single, 0), None);
    assert!(callbacks.grant_if_room(fids[0], A, Grant::Single, 0).is_some(), "it is there already");
    assert_eq!((callbacks.len(), callbacks.files()), (10, 10));
    callbacks.forget_host(A);
    assert!(callbacks.grant_if_room(fids[10], B, Grant::Single, 0).is_some());
}

#[test]
fn expired_promises_are_room_enough() {
    let callbacks = Callbacks::new(16, 3);
    callbacks.grant(fid(2), A, Grant::Single, 0);
    assert!(callbacks.is_full(fid(2)));
    assert!(callbacks.start_reclaim(fid(2), 100_000, 10).is_empty());
    assert!(!callbacks.is_full(fid(2)));
}

/// Compares the table with plain maps under the same random operations.
#[test]
fn the_table_agrees_with_a_simple_model() {
    let callbacks = table();
    let mut model: BTreeMap<(Fid, HostId), bool> = BTreeMap::new();
    let mut state = 0x1234_5678_u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    for _ in 0..20_000 {
        let volume = VolumeId(1 + random(3) as u32);
        let f = Fid { volume, ..fid(2 + random(40) as u32) };
        let host = HostId(random(12) as u32);
        match random(10) {
            0..=5 => {
                callbacks.grant(f, host, Grant::Single, 0);
                model.insert((f, host), true);
            }
            6 => {
                callbacks.give_up(f, host, 60);
                model.remove(&(f, host));
            }
            7 => {
                let mut hosts = callbacks.start_break(f, Some(host));
                hosts.sort();
                let expected: Vec<HostId> =
                    model.keys().filter(|(g, h)| *g == f && *h != host).map(|(_, h)| *h).collect();
                assert_eq!(hosts, expected);
                for told in hosts {
                    callbacks.broken(f, told);
                    model.remove(&(f, told));
                }
            }
            8 if random(20) == 0 => {
                callbacks.forget_host(host);
                model.retain(|(_, h), _| *h != host);
            }
            9 if random(50) == 0 => {
                let expected: BTreeSet<HostId> =
                    model.keys().filter(|(g, _)| g.volume == volume).map(|(_, h)| *h).collect();
                assert_eq!(callbacks.forget_volume(volume), expected.into_iter().collect::<Vec<_>>());
                model.retain(|(g, _), _| g.volume != volume);
            }
            _ => assert_eq!(callbacks.holds(f, host), model.contains_key(&(f, host))),
        }
        assert_eq!(callbacks.len(), model.len());
    }
}

/// The goal: 100 bytes a promise in all. The worst case is one promise per object.
#[test]
fn a_promise_takes_less_than_a_hundred_bytes() {
    let callbacks = Callbacks::new(1 << 20, 5);
    let promises = 100_000;
    for n in 0..promises {
        let fid = Fid { volume: VolumeId(n % 100), ..fid(2 * n) };
        callbacks.grant(fid, HostId(n % 1000), Grant::Single, u64::from(n / 100));
    }
    let each = callbacks.bytes() / callbacks.len();
    assert!(each <= 100, "{each} bytes");
}
