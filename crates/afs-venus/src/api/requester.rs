//! For whom something is done.

use std::fmt;

use afs_rpc::{Security, UnixTime};
use afs_wire::ids::CellName;

/// The process that asks for something.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Requester {
    /// Its user on this machine.
    pub uid: u32,
    /// Its number on this machine; 0 if it cannot be told.
    pub pid: u32,
}

/// Whose token it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TokenOwner {
    /// All processes of a user of this machine, but those in a session of their own.
    Uid(u32),
    /// The processes of one user in one session, see [`SessionLookup`].
    Session {
        /// The session: a random number.
        id: u128,
        /// The user. Another user's process that names this session is not in it.
        uid: u32,
    },
}

impl TokenOwner {
    /// The user of this machine.
    pub fn uid(self) -> u32 {
        match self {
            TokenOwner::Uid(uid) | TokenOwner::Session { uid, .. } => uid,
        }
    }
}

impl fmt::Display for TokenOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenOwner::Uid(uid) => write!(f, "user {uid}"),
            TokenOwner::Session { uid, .. } => write!(f, "a session of user {uid}"),
        }
    }
}

/// Who a user is to one cell, and how he proves it.
#[derive(Clone, Debug)]
pub struct Token {
    /// The cell, which must be one of [`crate::VenusConfig::cells`].
    pub cell: CellName,
    /// What connections to the cell's servers are made with.
    pub security: Security,
    /// From when on it is worthless; `None` is never.
    pub expires: Option<UnixTime>,
    /// What a listing shows of it. No secrets.
    pub label: String,
}

/// A token in a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenInfo {
    /// Whose it is.
    pub owner: TokenOwner,
    /// For which cell.
    pub cell: CellName,
    /// From when on it is worthless; `None` is never.
    pub expires: Option<UnixTime>,
    /// It has expired: its owner is nobody in particular by now.
    pub is_expired: bool,
    /// What was given as [`Token::label`].
    pub label: String,
}

/// Takes the session of a process, once; `None` if it is in none, or cannot be seen. Dropped without being called, it
/// means the same.
pub type SessionCallback = Box<dyn FnOnce(Option<u128>) + Send>;

/// Finds in which session a process is, for processes of users who have a session.
pub trait SessionLookup: Send + Sync + 'static {
    /// Tells the session of a process, now or later, from any thread. Never waits: a process may be able to keep whoever
    /// looks into it waiting for ever, and may itself wait for the one who calls.
    fn find_session(&self, of: Requester, tell: SessionCallback);
}
