//! Tests of the table: whom a capability serves, how long, and how many there are.

use afs_datapath::capability::{
    Access, ByteRange, Capability, DriveId, Generation, HolderId, KeyEpoch, Secret,
};
use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};

use super::slots::CAPABILITIES_MAX;
use super::*;
use crate::identity::TokenId;

fn file(vnode: u32) -> Fid {
    Fid::new(VolumeId(7), VnodeId(vnode), Uniquifier(1))
}

fn need(token: u64, vnode: u32) -> Need {
    Need { token: TokenId(token), fid: file(vnode), directory: Some(file(1)), used: Use::Read }
}

fn at(secs: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(secs)
}

fn given(group: Group, asked: u64) -> Given {
    let capability = Capability {
        drive: DriveId(1),
        epoch: KeyEpoch(1),
        group,
        access: Access::READ,
        range: ByteRange::ALL,
        expires: 0,
        generation: Generation(0),
        holder: HolderId(0),
    };
    let secret = Secret::new([0; 32]);
    Given { number: 0, capability, secret, asked: at(asked), ends: at(asked + 300) }
}

/// Asks for a need, and gives it a capability.
fn give(table: &mut Capabilities, need: Need, group: Group, now: u64) {
    assert!(matches!(table.look_up(&need, at(now)), Lookup::Missing));
    table.answered(&need, Some(given(group, now)), at(now));
}

fn is_here(table: &mut Capabilities, need: Need, now: u64) -> bool {
    matches!(table.look_up(&need, at(now)), Lookup::Here(_))
}

#[test]
fn one_capability_serves_a_directory_and_one_user_for_one_use() {
    let mut table = Capabilities::default();
    give(&mut table, need(1, 2), Group::Directory(file(1)), 0);
    assert!(is_here(&mut table, need(1, 2), 0) && is_here(&mut table, need(1, 4), 0));
    let others = [
        need(2, 2),
        Need { used: Use::Write, ..need(1, 2) },
        Need { directory: Some(file(3)), ..need(1, 2) },
        Need { token: TokenId::NONE, ..need(1, 2) },
    ];
    for other in others {
        assert!(matches!(table.look_up(&other, at(0)), Lookup::Missing), "{other:?}");
    }
}

#[test]
fn a_capability_for_a_file_or_another_directory_serves_the_file_alone() {
    for group in [Group::File(file(2)), Group::Directory(file(9))] {
        let mut table = Capabilities::default();
        give(&mut table, need(1, 2), group, 0);
        assert!(is_here(&mut table, need(1, 2), 0));
        assert!(matches!(table.look_up(&need(1, 4), at(0)), Lookup::Missing));
    }
}

#[test]
fn one_asks_and_asks_again_before_the_end_and_nobody_uses_it_afterwards() {
    let mut table = Capabilities::default();
    give(&mut table, need(1, 2), Group::Directory(file(1)), 0);
    assert!(is_here(&mut table, need(1, 2), 225));
    assert!(matches!(table.look_up(&need(1, 2), at(226)), Lookup::Due(_)));
    assert!(is_here(&mut table, need(1, 4), 227), "another one asks already");
    assert!(matches!(table.look_up(&need(1, 2), at(300)), Lookup::Missing));
    assert!(matches!(table.look_up(&need(1, 4), at(300)), Lookup::Asked));
}

#[test]
fn a_capability_that_is_not_given_again_is_used_to_its_end() {
    let mut table = Capabilities::default();
    give(&mut table, need(1, 2), Group::Directory(file(1)), 0);
    assert!(matches!(table.look_up(&need(1, 2), at(250)), Lookup::Due(_)));
    table.answered(&need(1, 2), None, at(251));
    assert!(is_here(&mut table, need(1, 2), 299));
    assert!(matches!(table.look_up(&need(1, 2), at(300)), Lookup::Missing));
}

#[test]
fn a_denied_capability_is_not_requested_again_for_a_minute() {
    let mut table = Capabilities::default();
    assert!(matches!(table.look_up(&need(1, 2), at(0)), Lookup::Missing));
    table.answered(&need(1, 2), None, at(0));
    assert!(matches!(table.look_up(&need(1, 2), at(59)), Lookup::Refused));
    assert!(matches!(table.look_up(&need(1, 4), at(59)), Lookup::Missing), "another file");
    assert!(matches!(table.look_up(&need(1, 2), at(60)), Lookup::Asked), "by the same directory");
}

#[test]
fn a_refused_capability_is_dropped_and_after_three_refused_at_once_no_other_is_asked_for() {
    for (age, is_refused) in [(100, [false; 4]), (1, [false, false, false, true])] {
        let mut table = Capabilities::default();
        for (round, is_refused) in is_refused.into_iter().enumerate() {
            let asked = round as u64 * (age + 1);
            let found = table.look_up(&need(1, 2), at(asked));
            assert_eq!(matches!(found, Lookup::Refused), is_refused, "{round}, after {age} s");
            assert_eq!(matches!(found, Lookup::Missing), !is_refused, "{round}, after {age} s");
            if is_refused {
                continue;
            }
            table.answered(&need(1, 2), Some(given(Group::Directory(file(1)), asked)), at(asked));
            let now = at(asked + age);
            let Lookup::Here(held) = table.look_up(&need(1, 2), now) else { panic!("not here") };
            // Several transfers by the same one are refused at once.
            (0..5).for_each(|_| table.refused(&need(1, 2), &held, Refusal::Revoked, now));
        }
    }
    let mut table = Capabilities::default();
    give(&mut table, need(1, 2), Group::Directory(file(1)), 0);
    let Lookup::Here(held) = table.look_up(&need(1, 2), at(100)) else { panic!("not here") };
    table.refused(&need(1, 2), &held, Refusal::NotAllowed, at(100));
    assert!(matches!(table.look_up(&need(1, 2), at(100)), Lookup::Refused), "the mode of this file");
    assert!(is_here(&mut table, need(1, 4), 100));
}

#[test]
fn the_table_is_bounded_and_what_is_used_stays() {
    let mut table = Capabilities::default();
    let of = |n: u32| Need { directory: Some(file(2 * n + 1)), ..need(1, 2 * n + 2) };
    for n in 0..3 * CAPABILITIES_MAX as u32 {
        give(&mut table, of(n), Group::Directory(file(2 * n + 1)), 0);
        assert!(is_here(&mut table, of(0), 0), "after {n}");
    }
    assert_eq!(table.slots.len(), CAPABILITIES_MAX);
    // Those that are being asked for are not given up, and no more are asked for then.
    let mut table = Capabilities::default();
    for n in 0..CAPABILITIES_MAX as u32 {
        assert!(matches!(table.look_up(&of(n), at(0)), Lookup::Missing));
    }
    assert!(matches!(table.look_up(&of(CAPABILITIES_MAX as u32), at(0)), Lookup::Refused));
}

/// What would be asked for together with what `need` needs, by vnode of the directory.
fn renewed_with(table: &mut Capabilities, need: Need, now: u64, most: usize) -> Vec<u32> {
    let renewals = table.renewals(&need, at(now), most);
    renewals.iter().map(|renewal| renewal.request().fid.vnode.0).collect()
}

fn of_directory(token: u64, vnode: u32) -> Need {
    Need { directory: Some(file(vnode)), ..need(token, vnode + 1) }
}

#[test]
fn what_is_in_use_is_renewed_together_with_what_is_due() {
    let mut table = Capabilities::default();
    // 1 is due, 3 and 5 soon; 7 is not used, 9 is another token's, 11 is new.
    for (token, vnode, given) in [(1, 1, 0), (1, 3, 40), (1, 5, 70), (1, 7, 40), (2, 9, 40), (1, 11, 100)] {
        give(&mut table, of_directory(token, vnode), Group::Directory(file(vnode)), given);
    }
    for (token, vnode) in [(1, 3), (1, 5), (2, 9), (1, 11)] {
        assert!(is_here(&mut table, of_directory(token, vnode), 120), "{vnode}");
    }
    assert!(matches!(table.look_up(&of_directory(1, 1), at(230)), Lookup::Due(_)));
    assert_eq!(
        renewed_with(&mut table, of_directory(1, 1), 230, 2),
        [1, 3],
        "as many as fit, with the first"
    );
    let renewals = table.renewals(&of_directory(1, 1), at(230), 9);
    assert_eq!(renewals.iter().map(|renewal| renewal.request().fid.vnode.0).collect::<Vec<_>>(), [1, 5]);
    // Nobody else asks meanwhile.
    assert!(is_here(&mut table, of_directory(1, 5), 299));
    for (renewal, group) in renewals.iter().zip([1, 99]) {
        table.renewed(renewal, Some(given(Group::Directory(file(group)), 230)), at(231));
    }
    assert!(is_here(&mut table, of_directory(1, 1), 440), "given again");
    assert!(
        is_here(&mut table, of_directory(1, 5), 369),
        "another group was given: the old one until its end"
    );
    assert!(matches!(table.look_up(&of_directory(1, 5), at(370)), Lookup::Missing));
}

#[test]
fn a_capability_that_comes_with_statuses_takes_the_place_of_none_or_of_one_that_ends() {
    let mut table = Capabilities::default();
    let (token, dir) = (TokenId(1), file(1));
    assert!(table.lacks(token, dir, at(0)));
    table.came(token, dir, given(Group::Directory(file(3)), 0), at(0));
    table.came(token, dir, given(Group::File(file(2)), 0), at(0));
    assert!(table.lacks(token, dir, at(0)), "others than were asked for are none");
    table.came(token, dir, given(Group::Directory(dir), 0), at(0));
    assert!(!table.lacks(token, dir, at(150)) && table.lacks(token, dir, at(151)));
    assert!(table.lacks(TokenId(2), dir, at(0)), "of another token");
    assert!(is_here(&mut table, need(1, 2), 100));
    assert!(matches!(table.look_up(&Need { used: Use::Write, ..need(1, 2) }, at(0)), Lookup::Missing));
    table.came(token, dir, given(Group::Directory(dir), 151), at(151));
    assert!(is_here(&mut table, need(1, 2), 300) && !table.lacks(token, dir, at(301)));
    // One that is being asked for stays that.
    let mut table = Capabilities::default();
    assert!(matches!(table.look_up(&need(1, 2), at(0)), Lookup::Missing));
    assert!(!table.lacks(token, dir, at(0)));
    table.came(token, dir, given(Group::Directory(dir), 0), at(0));
    assert!(matches!(table.look_up(&need(1, 2), at(0)), Lookup::Asked));
}
