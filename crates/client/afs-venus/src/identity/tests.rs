//! Tests of the identities alone: no server, no cache.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use afs_rpc::{Parts, Security, UnixTime};
use afs_sim::Sim;
use afs_wire::ids::CellName;
use parking_lot::Mutex;

use super::*;

const CELL: CellIndex = CellIndex(0);
const ALICE: TokenOwner = TokenOwner::Uid(5);

fn token(label: &str, expires: Option<u64>) -> Token {
    let expires = expires.map(|secs| UnixTime { secs, nanos: 0 });
    let cell = CellName::new("test.cell").unwrap();
    Token { cell, security: Security::null(), expires, label: label.into(), is_narrowed: false }
}

/// An identity part whose wall clock shows the value of the cell.
fn at(wall: Arc<AtomicU64>) -> Identity {
    let wall = move || UnixTime { secs: wall.load(Ordering::SeqCst), nanos: 0 };
    Identity::new(Parts::default().with_wall(wall).shared(), None, None)
}

fn now<T>(work: impl Future<Output = T>) -> Option<T> {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

#[test]
fn a_token_is_renewed_by_one_of_the_same_label_and_each_change_counts() {
    let identity = at(Arc::default());
    assert!(!identity.set_token(ALICE, CELL, token("alice", None)).unwrap());
    assert!(identity.set_token(ALICE, CELL, token("alice", None)).unwrap());
    assert!(!identity.set_token(ALICE, CELL, token("alice.admin", None)).unwrap());
    assert_eq!(identity.changes(), 3);
    assert_eq!((identity.remove_token(ALICE, None), identity.remove_token(ALICE, None)), (1, 0));
    assert_eq!(identity.changes(), 4);
    assert!(identity.tokens().is_empty());
}

#[test]
fn the_end_of_a_token_is_reported_once() {
    let wall = Arc::new(AtomicU64::new(10));
    let identity = at(wall.clone());
    identity.set_token(ALICE, CELL, token("alice", Some(100))).unwrap();
    let id = identity.credentials(Some(ALICE), CELL).id;
    assert!(id != TokenId::NONE && !identity.end_expired() && !identity.has_expired(Some(ALICE), CELL));
    wall.store(100, Ordering::SeqCst);
    assert_eq!(identity.credentials(Some(ALICE), CELL).id, TokenId::NONE);
    assert!(identity.end_expired() && !identity.end_expired());
    assert!(identity.has_expired(Some(ALICE), CELL));
}

#[test]
fn a_change_of_tokens_deletes_the_orders_of_removed_tokens() {
    let identity = at(Arc::default());
    identity.set_token(ALICE, CELL, token("alice", None)).unwrap();
    let id = identity.credentials(Some(ALICE), CELL).id;
    let key = crate::key::Key::new(CELL, afs_wire::ids::Fid::root(afs_wire::ids::VolumeId(1)));
    identity.rights_order().note(id, key);
    assert!(identity.rights_order().claim(id, CELL, key.fid.volume).is_some());
    identity.remove_token(ALICE, None);
    assert!(identity.rights_order().claim(id, CELL, key.fid.volume).is_none());
}

/// A finder of sessions that may never find one.
#[derive(Default)]
struct Found(Option<u128>, Mutex<Vec<crate::api::SessionCallback>>);

impl SessionLookup for Found {
    fn find_session(&self, _: Requester, tell: crate::api::SessionCallback) {
        match self.0 {
            Some(session) => tell(Some(session)),
            None => self.1.lock().push(tell),
        }
    }
}

const PROCESS: Requester = Requester { uid: 5, pid: 1 };

#[test]
fn a_session_is_looked_up_only_for_users_with_a_session() {
    let identity = Identity::new(Parts::inline(), None, Some(Arc::new(Found(Some(77), Mutex::default()))));
    assert_eq!(now(identity.owner_of(PROCESS)), Some(ALICE));
    let session = TokenOwner::Session { id: 77, uid: 5 };
    identity.set_token(session, CELL, token("alice", None)).unwrap();
    assert!(identity.has_sessions());
    assert_eq!(now(identity.owner_of(PROCESS)), Some(session));
    assert_eq!(now(identity.owner_of(Requester { uid: 6, pid: 1 })), Some(TokenOwner::Uid(6)));
}

#[test]
fn a_session_that_is_not_found_in_time_counts_as_none() {
    let sim = Sim::new(1);
    let node = sim.node("client", [10, 0, 0, 1].into());
    let env = sim.env(node);
    let identity = Identity::new(env.clone(), None, Some(Arc::new(Found::default())));
    let session = TokenOwner::Session { id: 77, uid: 5 };
    identity.set_token(session, CELL, token("alice", None)).unwrap();
    let began = env.now();
    let asked = async move { identity.owner_of(PROCESS).await };
    assert_eq!(sim.block_on(node, Duration::from_secs(60), asked).unwrap(), ALICE);
    assert_eq!(env.now().saturating_since(began), Duration::from_secs(2));
}

#[test]
fn a_process_that_may_be_in_a_narrowed_session_is_not_taken_for_the_user() {
    let sim = Sim::new(2);
    let node = sim.node("client", [10, 0, 0, 1].into());
    let identity = Arc::new(Identity::new(sim.env(node), None, Some(Arc::new(Found::default()))));
    identity.set_token(ALICE, CELL, token("alice", None)).unwrap();
    let session = TokenOwner::Session { id: 77, uid: 5 };
    let narrowed = Token { is_narrowed: true, ..token("alice without team", None) };
    identity.set_token(session, CELL, narrowed).unwrap();
    let asked = identity.clone();
    let asked = async move { asked.owner_of(PROCESS).await };
    let owner = sim.block_on(node, Duration::from_secs(60), asked).unwrap();
    assert_eq!(identity.credentials(Some(owner), CELL).id, TokenId::NONE, "{owner}");
    assert_eq!(now(identity.owner_of(Requester { uid: 6, pid: 1 })), Some(TokenOwner::Uid(6)));
}
