//! Requesters and their tokens.

use std::fmt;

use afs_rpc::{Security, UnixTime};
use afs_wire::ids::CellName;

/// The process for which Venus does something.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Requester {
    /// Its user id on this machine.
    pub uid: u32,
    /// Its process id on this machine; 0 if unknown.
    pub pid: u32,
}

/// Owner of a token.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TokenOwner {
    /// All processes of a user, except those in a session of their own.
    Uid(u32),
    /// The processes of one user in one session, see [`SessionLookup`].
    Session {
        /// The session: a random number.
        id: u128,
        /// The user. A process of another user that names this session is not in it.
        uid: u32,
    },
}

impl TokenOwner {
    /// User id on this machine.
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

/// A user's identity in one cell, and the security with which connections authenticate it.
#[derive(Clone, Debug)]
pub struct Token {
    /// The cell, which must be one of [`crate::VenusConfig::cells`].
    pub cell: CellName,
    /// Security of connections to the cell's servers.
    pub security: Security,
    /// Expiry time; `None`: never.
    pub expires: Option<UnixTime>,
    /// Text shown in listings. Contains no secrets.
    pub label: String,
    /// Whether it leaves out rights that its user has in other sessions. Processes of the user of which it is not known
    /// whether they are in the session of such a token are anonymous.
    pub is_narrowed: bool,
}

/// A token in a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenInfo {
    /// Its owner.
    pub owner: TokenOwner,
    /// Its cell.
    pub cell: CellName,
    /// Expiry time; `None`: never.
    pub expires: Option<UnixTime>,
    /// True if it has expired: its owner is anonymous now.
    pub is_expired: bool,
    /// The [`Token::label`].
    pub label: String,
}

/// Receives the session of a process, once; `None` if the process is in no session. Dropping it uncalled means that the
/// process cannot be examined.
pub type SessionCallback = Box<dyn FnOnce(Option<u128>) + Send>;

/// Finds the session of a process, for processes of users who have a session.
pub trait SessionLookup: Send + Sync + 'static {
    /// Calls `tell` with the session of a process, at once or later, from any thread. Must not block: a process may be
    /// able to block its examiner for ever, and may itself be waiting for the caller.
    fn find_session(&self, of: Requester, tell: SessionCallback);
}
