//! Rules of membership: both sides, groups in groups, subdomains, hosts, and bounds.

use super::*;

#[test]
fn memberships_count_on_both_sides() {
    let mut rows = cell();
    group(&mut rows, &as_user("alice"), "alice:friends", 0).unwrap();
    join(&mut rows, "bob", "alice:friends").unwrap();
    join(&mut rows, "carol", "alice:friends").unwrap();
    assert_eq!((status(&rows, "alice:friends").count, status(&rows, "bob").count), (2, 1));
    assert_eq!(join(&mut rows, "bob", "alice:friends"), refused(Refusal::IdExists));
    assert_eq!(join(&mut rows, "bob", "alice"), refused(Refusal::NotGroup));
    assert_eq!(join(&mut rows, "bob", "system:authuser"), refused(Refusal::Permission));
    assert_eq!(join(&mut rows, "anonymous", "alice:friends"), refused(Refusal::Permission));
    assert_eq!(join(&mut rows, "system:anyuser", "alice:friends"), refused(Refusal::Permission));
    let friends = id(&rows, "alice:friends");
    assert_eq!(members::add(&mut rows, &CELL, ViceId(99), friends), refused(Refusal::NoEntry));
    assert_eq!(members::add(&mut rows, &CELL, ViceId(2), ViceId(-999)), refused(Refusal::NoEntry));
    assert_eq!(list::elements(&rows, &CELL, friends), Ok(ids(&[3, 4])));
    assert_eq!(list::elements(&rows, &CELL, ViceId(3)), Ok(vec![friends]));
    members::remove(&mut rows, &as_user("alice"), ViceId(3), friends).unwrap();
    assert_eq!(members::remove(&mut rows, &CELL, ViceId(3), friends), refused(Refusal::NoEntry));
    assert_eq!((status(&rows, "alice:friends").count, status(&rows, "bob").count), (1, 0));
}

#[test]
fn groups_in_groups_reach_five_deep_and_never_round() {
    let mut rows = cell();
    for n in 1..=6 {
        group(&mut rows, &CELL, &format!("g{n}"), 0).unwrap();
    }
    join(&mut rows, "alice", "g1").unwrap();
    for n in 1..5 {
        join(&mut rows, &format!("g{n}"), &format!("g{}", n + 1)).unwrap();
    }
    assert_eq!(join(&mut rows, "g5", "g6"), refused(Refusal::TooMany));
    assert_eq!(join(&mut rows, "g6", "g1"), refused(Refusal::TooMany));
    assert_eq!(join(&mut rows, "g5", "g1"), refused(Refusal::BadArgument));
    assert_eq!(join(&mut rows, "g1", "g1"), refused(Refusal::BadArgument));
    let g = |n: i32| -205 - n;
    let expected = [g(5), g(4), g(3), g(2), g(1), -102, -101, 2];
    assert_eq!(cps::subdomain(&rows, ViceId(2)), Ok(ids(&expected)));
    assert_eq!(list::is_member(&rows, &CELL, ViceId(2), ViceId(g(5))), Ok(true));
    assert_eq!(list::is_member(&rows, &CELL, ViceId(3), ViceId(g(5))), Ok(false));
    assert_eq!(list::supergroups(&rows, &CELL, ViceId(g(2))), Ok(ids(&[g(3)])));
    assert_eq!(list::elements(&rows, &CELL, ViceId(g(2))), Ok(ids(&[g(1)])));
    // A path is as long as its longest way, also where a shorter one exists.
    join(&mut rows, "g1", "g5").unwrap();
    assert_eq!(join(&mut rows, "g6", "g1"), refused(Refusal::TooMany));
}

#[test]
fn subdomains_are_sorted_and_say_who_is_of_this_cell() {
    let mut rows = cell();
    assert_eq!(cps::subdomain(&rows, ViceId::ANONYMOUS), Ok(ids(&[-101, 32766])));
    assert_eq!(cps::subdomain(&rows, ViceId::ANYUSER), Ok(ids(&[-101])));
    assert_eq!(cps::subdomain(&rows, ViceId(1)), Ok(ids(&[-204, -102, -101, 1])));
    assert_eq!(cps::subdomain(&rows, ViceId(77)), refused(Refusal::NoEntry));
    group(&mut rows, &CELL, "system:authuser@far.org", 0).unwrap();
    let far = new(&mut rows, &CELL, "zoe@far.org", NewId::User).unwrap();
    assert_eq!(cps::subdomain(&rows, far), Ok(vec![ViceId(-206), ViceId::ANYUSER, far]));
    assert_eq!(list::is_member(&rows, &CELL, far, ViceId::AUTHUSER), Ok(false));
    assert_eq!(list::is_member(&rows, &CELL, far, ViceId::ANYUSER), Ok(true));
}

#[test]
fn hosts_are_in_the_groups_of_their_networks() {
    let mut rows = cell();
    for (host, name) in [("10.1.2.3", "h"), ("10.1.0.0", "n"), ("10.9.0.0", "other")] {
        new(&mut rows, &CELL, host, NewId::User).unwrap();
        group(&mut rows, &CELL, name, 0).unwrap();
        join(&mut rows, host, name).unwrap();
    }
    let of = |rows: &MemoryRows, host| cps::of_host(rows, host).unwrap();
    assert_eq!(of(&rows, Ipv4Addr::new(10, 1, 2, 3)), ids(&[-207, -206]));
    assert_eq!(of(&rows, Ipv4Addr::new(10, 1, 9, 9)), ids(&[-207]));
    assert_eq!(of(&rows, Ipv4Addr::new(10, 2, 2, 3)), []);
    let host = Some(Ipv4Addr::new(10, 1, 2, 3));
    assert_eq!(list::cps_of(&rows, &CELL, ViceId(2), host), Ok(ids(&[-207, -206, -102, -101, 2])));
    assert_eq!(list::cps_of(&rows, &CELL, BAD_ID, host), Ok(ids(&[-207, -206])));
    assert_eq!(list::cps_of(&rows, &CELL, BAD_ID, None), refused(Refusal::NoEntry));
}

#[test]
fn a_member_through_groups_in_groups_is_a_member() {
    let mut rows = cell();
    let g = group(&mut rows, &as_user("alice"), "alice:a", 0).unwrap();
    group(&mut rows, &CELL, "inner", 0).unwrap();
    join(&mut rows, "inner", "alice:a").unwrap();
    join(&mut rows, "bob", "inner").unwrap();
    fields::set(&mut rows, &CELL, g, Fields { privacy_mask: 0xff, privacy: 0x40, ..Fields::default() })
        .unwrap();
    assert!(list::status(&rows, &as_user("bob"), g).is_ok());
    assert_eq!(list::status(&rows, &as_user("carol"), g), refused(Refusal::Permission));
    // And an administrator through a group.
    join(&mut rows, "inner", "system:administrators").unwrap();
    assert_eq!(new(&mut rows, &as_user("bob"), "eve", NewId::User), Ok(ViceId(5)));
}

#[test]
fn a_full_group_takes_nobody_more() {
    let mut rows = cell();
    let g = group(&mut rows, &CELL, "full", 0).unwrap();
    rows::set_count(&mut rows, g, MEMBERS_MAX as u32).unwrap();
    assert_eq!(join(&mut rows, "alice", "full"), refused(Refusal::TooMany));
}

#[test]
fn no_user_is_in_more_groups_than_clients_accept() {
    let mut rows = cell();
    group(&mut rows, &CELL, "one", 0).unwrap();
    rows::set_count(&mut rows, ViceId(2), GROUPS_MAX as u32).unwrap();
    assert_eq!(join(&mut rows, "alice", "one"), refused(Refusal::TooMany));
    join(&mut rows, "bob", "one").unwrap();
}

fn without(groups: &[ViceId]) -> Terms {
    Suspended::new(groups.iter().copied()).unwrap().into()
}

#[test]
fn a_suspended_membership_is_left_out_with_what_follows_from_it_alone() {
    let mut rows = cell();
    let [team, staff, all, other] =
        ["team", "staff", "all", "other"].map(|name| group(&mut rows, &CELL, name, 0).unwrap());
    for (member, of) in
        [("alice", "team"), ("team", "staff"), ("staff", "all"), ("alice", "other"), ("other", "all")]
    {
        join(&mut rows, member, of).unwrap();
    }
    let of = |rows: &MemoryRows, groups: &[ViceId]| {
        let found = cps::of_holder(rows, ViceId(2), &without(groups)).unwrap();
        let kept = |id: &ViceId| ![ViceId::ANYUSER, ViceId::AUTHUSER, ViceId(2)].contains(id);
        assert_eq!(found.iter().filter(|id| !kept(id)).count(), 3, "{found:?}");
        found.into_iter().filter(kept).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(of(&rows, &[]), [team, staff, all, other].into());
    assert_eq!(of(&rows, &[team]), [all, other].into(), "in all by the other way");
    assert_eq!(of(&rows, &[staff]), [team, all, other].into());
    assert_eq!(of(&rows, &[team, other]), [].into());
    assert_eq!(of(&rows, &[all, ViceId(-999)]), [team, staff, other].into());
    join(&mut rows, "alice", "staff").unwrap();
    assert_eq!(of(&rows, &[team]), [staff, all, other].into(), "a member itself");
}

#[test]
fn a_caller_without_the_group_does_not_use_its_rights() {
    let mut rows = cell();
    let team = group(&mut rows, &CELL, "team", 0).unwrap();
    join(&mut rows, "alice", "team").unwrap();
    join(&mut rows, "alice", "system:administrators").unwrap();
    let of_team = group(&mut rows, &CELL, "team:own", team.0).unwrap();
    let as_alice = |groups: &[ViceId]| {
        let identity = RequesterIdentity::Local { name: "alice".into(), terms: without(groups) };
        Requester { identity, restricted: false }
    };
    let mut add = |by: Requester, member: i32| {
        let added = members::add(&mut rows, &by, ViceId(member), of_team);
        let _ = members::remove(&mut rows, &CELL, ViceId(member), of_team);
        added
    };
    assert_eq!(add(as_alice(&[]), 3), Ok(()));
    assert_eq!(add(as_alice(&[ADMINISTRATORS]), 3), Ok(()), "the team owns it");
    assert_eq!(add(as_alice(&[team]), 3), Ok(()), "an administrator");
    assert_eq!(add(as_alice(&[team, ADMINISTRATORS]), 3), refused(Refusal::Permission));
    let make = |rows: &mut MemoryRows, by: &Requester, name: &str| new(rows, by, name, NewId::User);
    assert_eq!(make(&mut rows, &as_alice(&[ADMINISTRATORS]), "eve"), refused(Refusal::Permission));
    assert!(make(&mut rows, &as_alice(&[team]), "eve").is_ok());
}
