//! A file server without the protection database follows its changes: rights change at once there too.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::protection_rig;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{
    Class, Credential, Identity, Level, Principal, Protection, Rx, Security, Suspended, Table, Terms,
    TokenGeneration,
};
use afs_server::remote::{DatabaseServers, RemoteProtectionDb};
use afs_server::{NameService, ProtectionNames, Subject};
use afs_sim::NodeId;
use afs_testkit::Claim;
use afs_testkit::net::endpoint;
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;
use afs_wire::pt;
use afs_wire::rpc::ServiceId;
use protection_rig::{Cell, SERVER};

const HERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 7000);
const ALICE: ViceId = ViceId(2);
const SECOND: Duration = Duration::from_secs(1);

/// A file server on a host of its own.
struct FileServer<'a> {
    cell: &'a Cell,
    node: NodeId,
    names: Arc<ProtectionNames>,
    _rx: Rx,
}

impl<'a> FileServer<'a> {
    fn of(cell: &'a Cell, databases: &[SocketAddr]) -> Self {
        let node = cell.sim.node("vice", HERE.ip());
        let rx = endpoint(&cell.sim, node, HERE);
        let servers = |security: Security| {
            DatabaseServers::new(&rx, ServiceId::PROTECTION, databases.iter().copied(), &security)
        };
        let (key, nobody) = (servers(Claim::of_key().security()), servers(Security::null()));
        let db = RemoteProtectionDb::new(cell.sim.env(node), key, nobody);
        let server =
            FileServer { cell, node, names: Arc::new(ProtectionNames::new(Arc::new(db), vec![])), _rx: rx };
        server.cell.sim.run_for(SECOND);
        server
    }

    /// Who Alice is to it.
    fn alice(&self) -> Result<Subject, AbortCode> {
        self.alice_without(&[])
    }

    /// Who she is when she has suspended groups.
    fn alice_without(&self, groups: &[ViceId]) -> Result<Subject, AbortCode> {
        self.alice_with(Suspended::new(groups.iter().copied()).unwrap().into())
    }

    /// Who she is with a token of these terms.
    fn alice_with(&self, terms: Terms) -> Result<Subject, AbortCode> {
        let protection = Protection { class: Class::Rxgk, level: Level::Crypt };
        let principal = Principal::Named { name: "alice".into(), cell: None, terms };
        let credential = Credential::new(principal, protection);
        let (identity, names) = (Identity::Proven(Arc::new(credential)), self.names.clone());
        let asked = async move { names.subject(&identity, Ipv4Addr::new(10, 1, 2, 3).into()).await };
        self.cell.sim.block_on(self.node, Duration::from_secs(600), asked).unwrap()
    }

    fn version(&self) -> u64 {
        self.names.version().unwrap()
    }

    /// Whether it hears of a change within this time.
    fn hears(&self, time: Duration, change: impl FnOnce()) -> bool {
        let before = self.version();
        change();
        self.cell.sim.run_for(time);
        self.version() != before
    }
}

#[test]
fn a_file_server_without_the_database_hears_of_a_change_within_a_second() {
    let cell = Cell::new(30);
    let (alice, team) = (cell.user("alice"), cell.group("team", 0));
    assert_eq!(alice, ALICE);
    let server = FileServer::of(&cell, &[SERVER]);
    assert!(server.names.follows_changes());
    for minute in 0..3 {
        assert!(!server.alice().unwrap().is(team), "{minute}");
        assert!(server.hears(SECOND, || cell.join(alice, team)), "{minute}");
        assert!(server.alice().unwrap().is(team), "{minute}");
        assert!(server.hears(SECOND, || cell.leave(alice, team)), "{minute}");
        assert!(!server.hears(Duration::from_secs(60), || ()), "nothing changes");
        assert!(server.names.follows_changes());
    }
}

#[test]
fn a_revoked_token_is_refused_within_a_second_where_the_database_is_not() {
    let cell = Cell::new(36);
    let (alice, _) = (cell.user("alice"), cell.user("bob"));
    let server = FileServer::of(&cell, &[SERVER]);
    assert_eq!(server.alice().unwrap().id(), alice);
    assert!(server.hears(SECOND, || cell.revoke(alice, 500)));
    assert_eq!(server.alice(), Err(AbortCode::RXGKEXPIRED));
    let terms = |generation| Terms { generation: TokenGeneration(generation), ..Terms::default() };
    assert_eq!(server.alice_with(terms(499)), Err(AbortCode::RXGKEXPIRED));
    assert_eq!(server.alice_with(terms(500)).unwrap().id(), alice);
}

#[test]
fn a_file_server_that_is_cut_off_promises_nothing_and_learns_of_all_when_it_is_back() {
    let cell = Cell::new(31);
    let (alice, team) = (cell.user("alice"), cell.group("team", 0));
    let server = FileServer::of(&cell, &[SERVER]);
    server.alice().unwrap();
    let link = || (cell.server_node(), server.node);
    cell.sim.cut(link().0, link().1);
    cell.join(alice, team);
    assert!(!server.hears(Duration::from_secs(40), || ()));
    assert!(!server.names.follows_changes(), "promises without a word from the database");
    assert!(server.hears(Duration::from_secs(40), || ()), "what was known is used for a minute at most");
    cell.sim.mend(link().0, link().1);
    cell.sim.run_for(Duration::from_secs(20));
    assert!(server.names.follows_changes());
    assert!(server.alice().unwrap().is(team));
}

#[test]
fn a_cut_without_a_change_takes_nothing_away() {
    let cell = Cell::new(32);
    let team = cell.group("team", 0);
    let alice = cell.user("alice");
    cell.join(alice, team);
    let server = FileServer::of(&cell, &[SERVER]);
    let known = server.alice().unwrap();
    cell.sim.cut(cell.server_node(), server.node);
    assert!(!server.hears(Duration::from_secs(35), || ()));
    cell.sim.mend(cell.server_node(), server.node);
    assert!(!server.hears(Duration::from_secs(30), || ()));
    assert!(server.names.follows_changes());
    assert_eq!(server.alice(), Ok(known));
}

#[test]
fn with_servers_of_others_what_is_known_is_used_for_a_minute() {
    let cell = Cell::new(33);
    // As in the protocol of AFS-3 alone.
    let others = Table::new(ServiceId::PROTECTION, Arc::new(()))
        .call::<pt::NameToId, _, _, AbortCode>(|_: Arc<()>, _, _| async move {
            Ok(pt::NameToIdReply { ids: pt::Ids::first_of([ALICE]) })
        })
        .call::<pt::GetCps, _, _, AbortCode>(|_: Arc<()>, _, _| async move {
            Ok(pt::IdsReply { ids: pt::Ids::first_of([ALICE, ViceId::AUTHUSER]), over: 0 })
        })
        .call::<pt::GetHostCps, _, _, _>(|_: Arc<()>, _, _| async move { Err(AbortCode::PRNOENT) });
    let address = SocketAddr::from(([10, 0, 0, 3], 7002));
    let rx = endpoint(&cell.sim, cell.sim.node("other", address.ip()), address);
    rx.listen_with(Arc::new(others), vec![Box::new(afs_testkit::ClaimServer(afs_testkit::WORD.into()))])
        .unwrap();
    let server = FileServer::of(&cell, &[address]);
    assert!(server.alice().unwrap().is(ViceId::AUTHUSER));
    assert!(!server.hears(Duration::from_secs(55), || ()));
    assert!(!server.names.follows_changes());
    assert!(server.hears(Duration::from_secs(10), || ()));
    assert!(server.alice().unwrap().is(ViceId::AUTHUSER));
}

#[test]
fn the_next_server_is_followed_when_the_first_has_ended() {
    let cell = Cell::new(34);
    let (alice, team) = (cell.user("alice"), cell.group("team", 0));
    let nobody = SocketAddr::from(([10, 0, 0, 4], 7002));
    let _ = cell.sim.node("empty", nobody.ip());
    let server = FileServer::of(&cell, &[nobody, SERVER]);
    cell.sim.run_for(Duration::from_secs(10));
    assert!(server.names.follows_changes());
    assert!(server.hears(SECOND, || cell.join(alice, team)));
    assert!(server.alice().unwrap().is(team));
}

#[test]
fn suspended_groups_are_left_out_as_by_a_server_with_the_database() {
    let cell = Cell::new(35);
    let alice = cell.user("alice");
    let [team, staff, all, other] = ["team", "staff", "all", "other"].map(|name| cell.group(name, 0));
    for (member, group) in [(alice, team), (team, staff), (staff, all), (alice, other), (other, all)] {
        cell.join(member, group);
    }
    let server = FileServer::of(&cell, &[SERVER]);
    for groups in
        [&[][..], &[team], &[staff], &[all], &[team, other], &[ViceId(-999)], &[ViceId::ADMINISTRATORS]]
    {
        let protection = Protection { class: Class::Rxgk, level: Level::Crypt };
        let terms = Suspended::new(groups.iter().copied()).unwrap().into();
        let principal = Principal::Named { name: "alice".into(), cell: None, terms };
        let credential = Credential::new(principal, protection);
        let identity = Identity::Proven(Arc::new(credential));
        let host = Ipv4Addr::new(10, 1, 2, 3).into();
        let expected = cell.sim.block_on(cell.server_node(), SECOND, {
            let names = ProtectionNames::new(cell.db.clone(), vec![]);
            async move { names.subject(&identity, host).await }
        });
        assert_eq!(server.alice_without(groups), expected.unwrap(), "{groups:?}");
    }
}
