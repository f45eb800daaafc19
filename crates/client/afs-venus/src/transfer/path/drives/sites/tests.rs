use std::net::SocketAddr;
use std::time::Duration;

use afs_datapath::capability::{ByteRange, Capability, HolderId, KeyEpoch, Secret};
use afs_datapath::session::Security;
use afs_wire::ids::{Uniquifier, VnodeId, VolumeId};

use super::*;

const DRIVE: DriveId = DriveId(9);
const NEW: Generation = Generation(5);

fn at(secs: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(secs)
}

fn offer(port: u16) -> Offer {
    let addresses = vec![SocketAddr::from(([10, 0, 0, 9], port))];
    Offer { drive: DRIVE, security: Security::Clear, addresses, minimum_size: 0 }
}

/// A capability that was given at a time, for a minute.
fn given(tag: u8, asked: u64) -> Given {
    let capability = Capability {
        drive: DRIVE,
        epoch: KeyEpoch(1),
        group: Group::Tagged(GroupTag([tag; 12])),
        access: Access::READ,
        range: ByteRange::ALL,
        expires: 60,
        generation: NEW,
        holder: HolderId(1),
    };
    Given { number: asked, capability, secret: Secret::new([1; 32]), asked: at(asked), ends: at(asked + 60) }
}

fn site(sites: &mut Sites, token: u64, tag: u8, asked: u64) -> Arc<Site> {
    let fid = Fid::new(VolumeId(7), VnodeId(2), Uniquifier(1));
    sites.given((TokenId(token), fid), offer(7010), given(tag, asked)).unwrap()
}

#[test]
fn all_layouts_of_a_group_have_one_capability_which_is_asked_for_again_once() {
    let mut sites = Sites::default();
    let (one, same) = (site(&mut sites, 1, 1, 0), site(&mut sites, 1, 1, 1));
    assert!(Arc::ptr_eq(&one, &same));
    assert_eq!(one.given().number, 1, "the one that lasts longer");
    assert!(!Arc::ptr_eq(&one, &site(&mut sites, 2, 1, 0)), "another user's");
    assert_eq!(one.stand(NEW, at(40)), Standing::Good);
    assert_eq!(one.stand(NEW, at(50)), Standing::Due);
    assert_eq!(one.stand(NEW, at(50)), Standing::Good, "it is asked for");
    assert_eq!(one.stand(NEW, at(61)), Standing::Asked);
    one.renewed(Some((given(1, 61), NEW)));
    assert_eq!(one.stand(NEW, at(62)), Standing::Good);
    assert_eq!(one.stand(NEW, at(130)), Standing::Ended);
}

#[test]
fn what_is_refused_or_for_something_else_voids_it_and_an_old_binding_alone_its_layout() {
    let mut sites = Sites::default();
    let voids = [None, Some(given(2, 60)), Some(Given { capability: other_drive(), ..given(1, 60) })];
    for given in voids {
        let one = site(&mut sites, 1, 1, 0);
        assert_eq!(one.stand(NEW, at(61)), Standing::Ended);
        one.renewed(given.map(|given| (given, NEW)));
        assert_eq!(one.stand(NEW, at(61)), Standing::Void);
    }
    let one = site(&mut sites, 1, 1, 0);
    one.renewed(Some((given(1, 50), NEW)));
    assert_eq!(one.stand(Generation(4), at(51)), Standing::Void);
    assert_eq!(one.stand(NEW, at(51)), Standing::Good);
    // The file server was not reached: it is void when it is over, and another layout is asked for.
    assert_eq!(one.stand(NEW, at(105)), Standing::Due);
    one.not_asked(at(105));
    assert_eq!(one.stand(NEW, at(105)), Standing::Due);
    one.not_asked(at(111));
    assert_eq!(one.stand(NEW, at(111)), Standing::Void);
    assert!(!Arc::ptr_eq(&one, &site(&mut sites, 1, 1, 112)));
}

fn other_drive() -> Capability {
    Capability { drive: DriveId(8), ..given(1, 0).capability }
}

#[test]
fn a_capability_that_the_drive_refuses_is_asked_for_again_before_the_next_use() {
    let mut sites = Sites::default();
    let one = site(&mut sites, 1, 1, 0);
    let refused = one.given();
    one.refused(&refused, at(3));
    assert_eq!(one.stand(NEW, at(3)), Standing::Ended);
    one.renewed(Some((given(1, 3), NEW)));
    // Of a read that was begun before.
    one.refused(&refused, at(4));
    assert_eq!(one.stand(NEW, at(4)), Standing::Good);
}

#[test]
fn those_in_use_are_renewed_together_and_those_of_no_layout_are_forgotten() {
    let mut sites = Sites::default();
    let all: Vec<_> = (0..40).map(|tag| site(&mut sites, 1, tag, 0)).collect();
    let other = site(&mut sites, 2, 1, 0);
    all.iter().chain([&other]).for_each(|site| _ = site.stand(NEW, at(1)));
    let unused = site(&mut sites, 1, 99, 0);
    assert_eq!(all[7].stand(NEW, at(50)), Standing::Due);
    let first = sites.renewals(vec![all[7].clone()], at(50), 32);
    assert_eq!(first.len(), 32);
    assert!(first.iter().all(|site| site.key.0 == TokenId(1) && !Arc::ptr_eq(site, &unused)));
    let next = all.iter().find(|site| site.stand(NEW, at(50)) == Standing::Due).unwrap();
    assert_eq!(sites.renewals(vec![next.clone()], at(50), 32).len(), 8, "the rest");
    drop((all, first, other, unused));
    for round in 0..100 {
        (0..100).for_each(|tag| drop(site(&mut sites, round, tag, 0)));
        assert!(sites.table.len() <= 200, "{}", sites.table.len());
    }
}
