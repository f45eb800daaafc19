//! Subjects of callers, as the servers of a cell resolve them.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::protection_rig;

use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use afs_rpc::{Class, Credential, Identity, Level, Principal, Protection, Suspended, Terms, TokenGeneration};
use afs_server::{NameService, ProtectionNames, Subject};
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;
use afs_wire::pt;
use protection_rig::{Cell, Role};

const HOST: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3));

fn proven(name: &str, cell: Option<&str>) -> Identity {
    let (cell, terms) = (cell.map(Into::into), Terms::default());
    let principal = Principal::Named { name: name.into(), cell, terms };
    credential(principal)
}

fn credential(principal: Principal) -> Identity {
    let protection = Protection { class: Class::Rxgk, level: Level::Crypt };
    Identity::Proven(Arc::new(Credential::new(principal, protection)))
}

/// A result that must be ready at the first poll.
fn now<T>(answer: impl Future<Output = T>) -> T {
    match pin!(answer).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("an embedded database answers at the first poll"),
    }
}

fn subject(names: &ProtectionNames, identity: &Identity) -> Subject {
    now(names.subject(identity, HOST)).unwrap()
}

fn names(cell: &Cell) -> ProtectionNames {
    ProtectionNames::new(cell.db.clone(), vec!["test.cell".into()])
}

#[test]
fn callers_have_their_groups_and_those_of_their_hosts() {
    let cell = Cell::new(20);
    let (alice, host) = (cell.user("alice"), cell.user("10.1.2.3"));
    let (outer, inner, machines) =
        (cell.group("outer", 0), cell.group("inner", 0), cell.group("machines", 0));
    cell.join(alice, inner);
    cell.join(inner, outer);
    cell.join(host, machines);
    let names = names(&cell);
    let found = subject(&names, &proven("alice", None));
    assert_eq!(found.groups(), [inner, outer, ViceId::AUTHUSER, ViceId::ANYUSER, alice]);
    assert_eq!((found.id(), found.host_groups()), (alice, &[machines][..]));
    assert!(!found.is_administrator());
    let anonymous = subject(&names, &Identity::Anonymous);
    assert!(anonymous.is_anonymous() && anonymous.host_is(machines));
    assert_eq!(subject(&names, &proven("Alice", None)).id(), alice, "names are folded");
}

#[test]
fn who_waits_for_a_change_of_the_database_is_told_of_it() {
    let cell = Cell::new(23);
    let (alice, team) = (cell.user("alice"), cell.group("team", 0));
    let names = names(&cell);
    let version = names.version().unwrap();
    let mut changed = names.changed(version).unwrap();
    let mut context = Context::from_waker(Waker::noop());
    assert!(changed.as_mut().poll(&mut context).is_pending());
    cell.join(alice, team);
    assert!(changed.as_mut().poll(&mut context).is_ready());
    assert_ne!(names.version(), Some(version));
    assert!(subject(&names, &proven("alice", None)).is(team));
}

#[test]
fn administrators_are_who_is_in_the_group_and_who_has_the_key() {
    let cell = Cell::new(21);
    let names = names(&cell);
    for identity in [Identity::Local, credential(Principal::CellKey), proven("admin", None)] {
        assert!(subject(&names, &identity).is_administrator(), "{identity:?}");
    }
}

#[test]
fn foreign_names_and_odd_ones_are_never_local() {
    let cell = Cell::new(22);
    let far = cell.group("system:authuser@far.org", 0);
    let zoe = cell.user("zoe@far.org");
    let names = names(&cell);
    for identity in [
        proven("admin", Some("far.org")),
        proven("zoe@far.org", None),
        proven("system:administrators", None),
        proven("nobody", None),
    ] {
        let found = subject(&names, &identity);
        assert!(
            found.is_anonymous() && found.groups() == [ViceId::ANYUSER, ViceId::ANONYMOUS],
            "{identity:?}"
        );
    }
    let found = subject(&names, &proven("zoe", Some("far.org")));
    assert_eq!(found.groups(), [far, ViceId::ANYUSER, zoe], "not in system:authuser");
}

#[test]
fn a_membership_that_is_revoked_is_missing_at_the_next_call() {
    let cell = Cell::new(23);
    let names = names(&cell);
    let admin = proven("admin", None);
    assert!(subject(&names, &admin).is_administrator());
    let group = ViceId::ADMINISTRATORS;
    cell.ask(Role::CellKey, pt::RemoveFromGroup { member: ViceId(1), group }).unwrap();
    assert!(!subject(&names, &admin).is_administrator());
    cell.ask(Role::CellKey, pt::AddToGroup { member: ViceId(1), group }).unwrap();
    assert!(subject(&names, &admin).is_administrator());
    // The last administrator is not deleted.
    let alice = cell.user("alice");
    cell.ask(Role::CellKey, pt::AddToGroup { member: alice, group }).unwrap();
    cell.ask(Role::CellKey, pt::Delete { id: ViceId(1) }).unwrap();
    assert!(subject(&names, &admin).is_anonymous());
}

#[test]
fn names_and_ids_are_translated_for_access_lists() {
    let cell = Cell::new(24);
    let alice = cell.user("alice");
    let names = names(&cell);
    let wanted = ["Alice".into(), "alice@TEST.cell".into(), "nobody".into(), "system:anyuser".into()];
    assert_eq!(now(names.ids_of(&wanted)).unwrap(), [Some(alice), Some(alice), None, Some(ViceId::ANYUSER)]);
    let found = now(names.names_of(&[alice, ViceId(99)])).unwrap();
    assert_eq!(found, [Some("alice".into()), None]);
}

fn of_generation(name: &str, generation: u64, class: Class) -> Identity {
    let terms = Terms { generation: TokenGeneration(generation), ..Terms::default() };
    let principal = Principal::Named { name: name.into(), cell: None, terms };
    let protection = Protection { class, level: Level::Crypt };
    Identity::Proven(Arc::new(Credential::new(principal, protection)))
}

#[test]
fn a_revoked_token_has_expired_at_the_next_call_and_those_of_others_count() {
    let cell = Cell::new(26);
    let (alice, bob) = (cell.user("alice"), cell.user("bob"));
    let names = names(&cell);
    let asked =
        |name: &str, generation, class| now(names.subject(&of_generation(name, generation, class), HOST));
    for (revoked, counts) in [(500, 500), (500, 501), (900, 900)] {
        assert!(asked("alice", counts - 1, Class::Rxgk).is_ok());
        cell.revoke(alice, revoked);
        for generation in [0, counts - 1] {
            assert_eq!(asked("alice", generation, Class::Rxgk), Err(AbortCode::RXGKEXPIRED));
            assert_eq!(asked("ALICE", generation, Class::Rxkad), Err(AbortCode::RXKADEXPIRED));
        }
        assert_eq!(asked("alice", counts, Class::Rxgk).unwrap().id(), alice);
        assert_eq!(asked("bob", 0, Class::Rxgk).unwrap().id(), bob);
        assert!(subject(&names, &Identity::Anonymous).is_anonymous());
    }
    // Another id, name or quota gives nothing back.
    let rename = pt::ChangeEntry {
        id: alice,
        name: pt::NameText::new("alicia").unwrap(),
        owner: ViceId(0),
        new_id: ViceId(900),
    };
    cell.ask(Role::CellKey, rename).unwrap();
    assert_eq!(asked("alicia", 899, Class::Rxgk), Err(AbortCode::RXGKEXPIRED));
    assert_eq!(asked("alicia", 900, Class::Rxgk).unwrap().id(), ViceId(900));
}

#[test]
fn a_revoked_user_of_another_cell_is_refused_too() {
    let cell = Cell::new(27);
    cell.group("system:authuser@far.org", 0);
    let zoe = cell.user("zoe@far.org");
    let names = names(&cell);
    assert_eq!(subject(&names, &proven("zoe", Some("far.org"))).id(), zoe);
    cell.revoke(zoe, 500);
    assert_eq!(now(names.subject(&proven("zoe", Some("far.org")), HOST)), Err(AbortCode::RXGKEXPIRED));
}

fn without(name: &str, groups: &[ViceId]) -> Identity {
    let terms = Suspended::new(groups.iter().copied()).unwrap().into();
    credential(Principal::Named { name: name.into(), cell: None, terms })
}

#[test]
fn a_caller_without_a_group_is_another_subject_than_the_same_user_with_it() {
    let cell = Cell::new(25);
    let (alice, team, outer) = (cell.user("alice"), cell.group("team", 0), cell.group("outer", 0));
    cell.join(alice, team);
    cell.join(team, outer);
    let names = names(&cell);
    for _ in 0..2 {
        // From the cache, too.
        assert!(subject(&names, &proven("alice", None)).is(outer));
        let found = subject(&names, &without("alice", &[team]));
        assert_eq!(found.groups(), [ViceId::AUTHUSER, ViceId::ANYUSER, alice]);
        assert!(subject(&names, &without("alice", &[outer])).is(team));
        assert!(!subject(&names, &without("admin", &[ViceId::ADMINISTRATORS])).is_administrator());
    }
    cell.join(alice, outer);
    assert!(subject(&names, &without("alice", &[team])).is(outer), "by another way now");
}

#[test]
fn a_foreign_caller_with_suspended_groups_is_anonymous() {
    let cell = Cell::new(26);
    let far = cell.group("system:authuser@far.org", 0);
    cell.user("zoe@far.org");
    let terms = Suspended::new([far]).unwrap().into();
    let principal = Principal::Named { name: "zoe".into(), cell: Some("far.org".into()), terms };
    assert!(subject(&names(&cell), &credential(principal)).is_anonymous());
}
