//! Table of all tokens of a mount.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use afs_rpc::{Security, UnixTime};
use parking_lot::Mutex;

use crate::api::{Token, TokenInfo, TokenOwner};
use crate::key::CellIndex;

/// Limit of tokens and remembered sessions, beyond which a token is refused.
const TOKENS_MAX: usize = 4096;

/// The user for whom something is done; `None`: anonymous.
pub(crate) type User = Option<TokenOwner>;

/// Number of a token, never reused in this process. Another token of the same owner has another number, since it may
/// authenticate another identity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub(crate) struct TokenId(pub u64);

impl TokenId {
    /// No token: anonymous.
    pub const NONE: TokenId = TokenId(0);
}

/// Token and security for a call.
#[derive(Clone, Debug)]
pub(crate) struct Credentials {
    pub id: TokenId,
    pub security: Security,
}

impl Credentials {
    /// Those of anonymous calls.
    pub const NONE: Credentials = Credentials { id: TokenId::NONE, security: Security::null() };
}

/// Tokens by owner and cell.
#[derive(Default)]
pub(crate) struct TokenTable {
    /// True if the table is not empty. Most mounts have one user and an empty table.
    any: AtomicBool,
    /// True if the table has a session, or the remains of one.
    any_session: AtomicBool,
    /// True if a session has a token.
    has_session_token: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    last: u64,
    held: BTreeMap<(TokenOwner, CellIndex), Held>,
    /// The user who needs no token in the first cell.
    default: Option<(u32, Credentials)>,
}

/// A token, or the remains of one: a process whose session had a token stays anonymous after its removal, and what
/// a user has not stored before the logout waits for the next login.
struct Held {
    id: TokenId,
    token: Token,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Good,
    Expired,
    Removed,
}

impl TokenTable {
    /// A table with a user who needs no token in the first cell.
    pub fn new(default: Option<(u32, Security)>) -> Self {
        let table = TokenTable::default();
        if let Some((uid, security)) = default {
            let mut inner = table.inner.lock();
            inner.last = 1;
            inner.default = Some((uid, Credentials { id: TokenId(1), security }));
            table.any.store(true, Ordering::SeqCst);
        }
        table
    }

    /// The owner of the tokens that a process of a user in this session uses.
    pub fn owner(&self, uid: u32, session: Option<u128>) -> TokenOwner {
        let named = session.map(|id| TokenOwner::Session { id, uid });
        let is_known = |owner: &TokenOwner| {
            self.inner
                .lock()
                .held
                .range((*owner, CellIndex(0))..=(*owner, CellIndex(u16::MAX)))
                .next()
                .is_some()
        };
        named.filter(is_known).unwrap_or(TokenOwner::Uid(uid))
    }

    /// True if the user has a session: only then the session of a process matters.
    pub fn has_session(&self, uid: u32) -> bool {
        self.any_session.load(Ordering::SeqCst)
            && self.inner.lock().held.keys().any(|(owner, _)| is_session(*owner) && owner.uid() == uid)
    }

    /// True if the user has a session whose token leaves out rights, be it expired or removed.
    pub fn has_narrowed_session(&self, uid: u32) -> bool {
        let is_one = |owner: &TokenOwner, held: &Held| {
            is_session(*owner) && owner.uid() == uid && held.token.is_narrowed
        };
        self.inner.lock().held.iter().any(|((owner, _), held)| is_one(owner, held))
    }

    /// True if there is a session with a token, be it expired.
    pub fn has_sessions(&self) -> bool {
        self.has_session_token.load(Ordering::SeqCst)
    }

    /// Credentials for calls to a cell. `now` is called only if a token can expire.
    pub fn credentials(&self, user: User, cell: CellIndex, now: impl FnOnce() -> UnixTime) -> Credentials {
        let Some(owner) = user.filter(|_| self.any.load(Ordering::SeqCst)) else { return Credentials::NONE };
        let inner = self.inner.lock();
        match (inner.held.get(&(owner, cell)), &inner.default) {
            (Some(held), _) if held.is_good(now) => {
                Credentials { id: held.id, security: held.token.security.clone() }
            }
            (Some(held), _) if held.state != State::Removed => Credentials::NONE,
            (_, Some((uid, credentials))) if owner == TokenOwner::Uid(*uid) && cell == CellIndex(0) => {
                credentials.clone()
            }
            _ => Credentials::NONE,
        }
    }

    /// True if a user had a token for a cell and is anonymous now because it expired.
    pub fn is_expired(&self, user: User, cell: CellIndex, now: UnixTime) -> bool {
        let inner = self.inner.lock();
        let held = user.and_then(|owner| inner.held.get(&(owner, cell)));
        held.is_some_and(|held| held.state != State::Removed && !held.is_good(|| now))
    }

    /// True if a user had a token for a cell and is anonymous now, because it expired or was removed.
    pub fn is_lost(&self, user: User, cell: CellIndex, now: UnixTime) -> bool {
        let needs_none = |inner: &Inner| {
            inner
                .default
                .as_ref()
                .is_some_and(|(uid, _)| user == Some(TokenOwner::Uid(*uid)) && cell == CellIndex(0))
        };
        let inner = self.inner.lock();
        match user.and_then(|owner| inner.held.get(&(owner, cell))) {
            Some(held) if held.state == State::Removed => !needs_none(&inner),
            Some(held) => !held.is_good(|| now),
            None => false,
        }
    }

    /// Sets a token, in place of the owner's previous one. `false` if there are too many.
    pub fn set(&self, owner: TokenOwner, cell: CellIndex, token: Token) -> bool {
        let mut inner = self.inner.lock();
        if inner.held.len() >= TOKENS_MAX && !inner.held.contains_key(&(owner, cell)) {
            let removed = inner.held.iter().filter(|(_, held)| held.state == State::Removed);
            let Some(oldest) = removed.min_by_key(|(_, held)| held.id).map(|(key, _)| *key) else {
                return false;
            };
            inner.held.remove(&oldest);
        }
        inner.last += 1;
        let held = Held { id: TokenId(inner.last), token, state: State::Good };
        inner.held.insert((owner, cell), held);
        self.any.store(true, Ordering::SeqCst);
        self.note_sessions(&inner);
        true
    }

    /// Removes the owner's tokens for a cell, or for all cells. Returns their number.
    pub fn remove(&self, owner: TokenOwner, cell: Option<CellIndex>) -> usize {
        let mut inner = self.inner.lock();
        let mut removed = 0;
        for ((of, at), held) in &mut inner.held {
            if *of != owner || cell.is_some_and(|cell| cell != *at) || held.state == State::Removed {
                continue;
            }
            held.state = State::Removed;
            held.token.security = Security::null();
            removed += 1;
        }
        self.note_sessions(&inner);
        removed
    }

    fn note_sessions(&self, inner: &Inner) {
        let mut sessions = inner.held.iter().filter(|((owner, _), _)| is_session(*owner)).peekable();
        self.any_session.store(sessions.peek().is_some(), Ordering::SeqCst);
        let has_token = sessions.any(|(_, held)| held.state != State::Removed);
        self.has_session_token.store(has_token, Ordering::SeqCst);
    }

    /// All tokens, including expired ones.
    pub fn list(&self) -> Vec<TokenInfo> {
        let inner = self.inner.lock();
        let listed = inner.held.iter().filter(|(_, held)| held.state != State::Removed);
        listed.map(|((owner, _), held)| held.info(*owner)).collect()
    }

    /// Numbers of the valid tokens.
    pub fn ids(&self) -> Vec<TokenId> {
        let inner = self.inner.lock();
        let held = inner.held.values().filter(|held| held.state == State::Good).map(|held| held.id);
        held.chain(inner.default.iter().map(|(_, credentials)| credentials.id)).collect()
    }

    /// A valid token.
    pub fn info(&self, id: TokenId) -> Option<TokenInfo> {
        let inner = self.inner.lock();
        let held = inner.held.iter().find(|(_, held)| held.id == id && held.state == State::Good);
        held.map(|((owner, _), held)| held.info(*owner))
    }

    /// Marks tokens past their expiry time as expired; each is returned once.
    pub fn take_expired(&self, now: UnixTime) -> Vec<TokenInfo> {
        let mut expired = Vec::new();
        if !self.any.load(Ordering::SeqCst) {
            return expired;
        }
        for ((owner, _), held) in &mut self.inner.lock().held {
            if held.state != State::Good || held.is_good(|| now) {
                continue;
            }
            held.state = State::Expired;
            held.token.security = Security::null();
            expired.push(held.info(*owner));
        }
        expired
    }
}

impl Held {
    fn info(&self, owner: TokenOwner) -> TokenInfo {
        TokenInfo {
            owner,
            cell: self.token.cell.clone(),
            expires: self.token.expires,
            is_expired: self.state == State::Expired,
            label: self.token.label.clone(),
        }
    }

    fn is_good(&self, now: impl FnOnce() -> UnixTime) -> bool {
        self.state == State::Good && self.token.expires.is_none_or(|expires| now() < expires)
    }
}

fn is_session(owner: TokenOwner) -> bool {
    matches!(owner, TokenOwner::Session { .. })
}

#[cfg(test)]
mod tests {
    use afs_wire::ids::CellName;

    use super::*;

    const CELL: CellIndex = CellIndex(0);
    const SESSION: TokenOwner = TokenOwner::Session { id: 77, uid: 5 };

    fn token(expires: Option<u64>) -> Token {
        let expires = expires.map(|secs| UnixTime { secs, nanos: 0 });
        let cell = CellName::new("test.cell").unwrap();
        Token { cell, security: Security::null(), expires, label: "alice".into(), is_narrowed: false }
    }

    fn at(secs: u64) -> impl FnOnce() -> UnixTime {
        move || UnixTime { secs, nanos: 0 }
    }

    #[test]
    fn a_user_without_token_is_anonymous_and_each_token_has_a_new_id() {
        let table = TokenTable::default();
        let owner = TokenOwner::Uid(5);
        assert_eq!(table.credentials(Some(owner), CELL, at(0)).id, TokenId::NONE);
        assert!(table.set(owner, CELL, token(None)));
        let first = table.credentials(Some(owner), CELL, at(0)).id;
        assert!(table.set(owner, CELL, token(None)));
        let second = table.credentials(Some(owner), CELL, at(0)).id;
        assert!(first != TokenId::NONE && second != TokenId::NONE && first != second);
        assert_eq!(table.credentials(Some(owner), CellIndex(1), at(0)).id, TokenId::NONE);
        assert_eq!(table.credentials(Some(TokenOwner::Uid(6)), CELL, at(0)).id, TokenId::NONE);
        assert_eq!(table.credentials(None, CELL, at(0)).id, TokenId::NONE);
        assert_eq!((table.remove(owner, None), table.remove(owner, None)), (1, 0));
        assert_eq!(table.credentials(Some(owner), CELL, at(0)).id, TokenId::NONE);
    }

    #[test]
    fn tokens_are_bounded_and_a_removed_one_gives_way() {
        let table = TokenTable::default();
        let owner = |n: usize| TokenOwner::Uid(n as u32);
        assert!((0..TOKENS_MAX).all(|n| table.set(owner(n), CELL, token(None))));
        assert!(!table.set(owner(TOKENS_MAX), CELL, token(None)));
        assert!(table.set(owner(5), CELL, token(None)), "in the place of an earlier one");
        table.remove(owner(9), None);
        assert!(table.set(owner(TOKENS_MAX), CELL, token(None)));
        assert_eq!(table.inner.lock().held.len(), TOKENS_MAX);
    }

    #[test]
    fn an_expired_token_is_unused_and_reported_once() {
        let table = TokenTable::default();
        let owner = TokenOwner::Uid(5);
        table.set(owner, CELL, token(Some(100)));
        assert_ne!(table.credentials(Some(owner), CELL, at(99)).id, TokenId::NONE);
        assert!(table.take_expired(UnixTime { secs: 99, nanos: 0 }).is_empty());
        assert_eq!(table.credentials(Some(owner), CELL, at(100)).id, TokenId::NONE);
        assert_eq!(table.take_expired(UnixTime { secs: 100, nanos: 0 }).len(), 1);
        assert!(table.take_expired(UnixTime { secs: 100, nanos: 0 }).is_empty());
        assert!(table.is_expired(Some(owner), CELL, UnixTime { secs: 100, nanos: 0 }));
        assert!(table.list().iter().all(|info| info.is_expired));
    }

    #[test]
    fn a_session_is_known_to_its_user_alone_and_outlives_its_token() {
        let table = TokenTable::default();
        assert!(!table.has_session(5) && !table.has_sessions());
        table.set(SESSION, CELL, token(None));
        assert!(table.has_session(5) && !table.has_session(6));
        assert_eq!(table.owner(6, Some(77)), TokenOwner::Uid(6));
        assert_eq!(table.owner(5, Some(77)), SESSION);
        assert_eq!(table.owner(5, Some(78)), TokenOwner::Uid(5));
        assert_eq!(table.owner(5, None), TokenOwner::Uid(5));
        table.set(TokenOwner::Uid(5), CELL, token(None));
        table.remove(SESSION, None);
        assert_eq!(table.owner(5, Some(77)), SESSION);
        assert_eq!(table.credentials(Some(SESSION), CELL, at(0)).id, TokenId::NONE);
        assert_eq!(table.list().len(), 1);
    }

    #[test]
    fn the_default_serves_its_user_until_he_has_a_token_and_afterwards() {
        let table = TokenTable::new(Some((5, Security::null())));
        let id = |uid| table.credentials(Some(TokenOwner::Uid(uid)), CELL, at(0)).id;
        let own = id(5);
        assert!(own != TokenId::NONE && id(6) == TokenId::NONE);
        table.set(TokenOwner::Uid(5), CELL, token(None));
        assert!(id(5) != own && id(5) != TokenId::NONE);
        table.remove(TokenOwner::Uid(5), None);
        assert_eq!(id(5), own);
    }
}
