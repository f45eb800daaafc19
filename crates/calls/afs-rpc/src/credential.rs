//! Credential of a client, as authenticated by the connection's security class.

use std::fmt;
use std::sync::Arc;

use crate::client::Security;
use crate::{Person, Suspended, Terms, UnixTime};

/// The authenticated principal of a client, and the protection of its connection. Created by a security class when it
/// accepts a client's response; `afs-auth` has the classes (`docs/protocol/rxkad.md`, `docs/protocol/rxgk.md`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Credential {
    /// The principal.
    pub principal: Principal,
    /// Class and level.
    pub protection: Protection,
    /// When the authentication expires; `None` is never. The class refuses packets after that by itself.
    pub expires: Option<UnixTime>,
    /// Security for calls back to the client that authenticate the server to it, if the client provided it.
    pub callback: Option<Security>,
    /// Whom a holder of the cell's key acts for, for the audit log; none with other principals.
    pub person: Option<Person>,
}

impl Credential {
    /// One that does not expire, without security for calls back, and nobody behind it.
    #[must_use]
    pub fn new(principal: Principal, protection: Protection) -> Self {
        Self { principal, protection, expires: None, callback: None, person: None }
    }
}

/// An authenticated name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Principal {
    /// A holder of the cell's key: a server of the cell, or an administrator on a server's host (`-localauth`). Has
    /// all rights.
    CellKey,
    /// A user, a host or a service.
    Named {
        /// Lower-case `name` or `name.instance`, as the protection database has it. At most 127 bytes.
        name: Arc<str>,
        /// The foreign cell or realm, lower-case; `None` for this cell.
        cell: Option<Arc<str>>,
        /// What its token says besides.
        terms: Terms,
    },
}

impl Principal {
    /// A user of this cell, with all groups.
    #[must_use]
    pub fn local(name: impl Into<Arc<str>>) -> Self {
        Principal::Named { name: name.into(), cell: None, terms: Terms::default() }
    }

    /// The groups whose rights the principal does not have now; none of the cell's key.
    #[must_use]
    pub fn suspended(&self) -> Suspended {
        match self {
            Principal::CellKey => Suspended::default(),
            Principal::Named { terms, .. } => terms.suspended.clone(),
        }
    }
}

/// The name alone.
impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Principal::CellKey => f.write_str("(cell key)"),
            Principal::Named { name, cell: None, .. } => f.write_str(name),
            Principal::Named { name, cell: Some(cell), .. } => write!(f, "{name}@{cell}"),
        }
    }
}

/// A security class, whatever its index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Class {
    /// No security: no authentication.
    #[default]
    Null,
    /// `docs/protocol/rxkad.md`. Long broken; the server's configuration decides what it may be used for.
    Rxkad,
    /// `docs/protocol/rxgk.md`.
    Rxgk,
}

/// What a class does to each packet, in increasing order of protection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Level {
    /// The client is authenticated; its packets are not protected.
    #[default]
    Clear,
    /// Packets are protected against modification (rxkad: only the first eight bytes).
    Auth,
    /// Packets are encrypted as well.
    Crypt,
}

impl Level {
    /// The level's number on the wire, the same in rxkad and rxgk.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Level::Clear => 0,
            Level::Auth => 1,
            Level::Crypt => 2,
        }
    }

    /// The level of a number.
    #[must_use]
    pub const fn from_number(number: i32) -> Option<Self> {
        match number {
            0 => Some(Level::Clear),
            1 => Some(Level::Auth),
            2 => Some(Level::Crypt),
            _ => None,
        }
    }
}

/// How a connection is protected.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Protection {
    /// The class.
    pub class: Class,
    /// Its level; [`Level::Clear`] for [`Class::Null`].
    pub level: Level,
}
