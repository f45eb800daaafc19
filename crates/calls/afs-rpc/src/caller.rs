//! Caller of a service: its address, connection and identity.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::credential::{Credential, Principal, Protection};
use crate::{Person, UnixTime};

/// Key of an Rx connection at its server (`docs/protocol/rx.md` "3. Connections, ids, epochs").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnKey {
    /// Epoch of the client process.
    pub epoch: u32,
    /// Connection id with the channel bits clear.
    pub cid: u32,
}

impl fmt::Display for ConnKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}/{:08x}", self.epoch, self.cid)
    }
}

/// Authenticated identity of a caller.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Identity {
    /// Not authenticated.
    #[default]
    Anonymous,
    /// The administrator, in tests and simulations: the call comes from an address given to
    /// [`Rx::trust`](crate::Rx::trust).
    Local,
    /// The identity that the connection's security class has authenticated.
    Proven(Arc<Credential>),
}

impl Identity {
    /// The authenticated principal, if any.
    #[must_use]
    pub fn principal(&self) -> Option<&Principal> {
        match self {
            Identity::Proven(credential) => Some(&credential.principal),
            Identity::Anonymous | Identity::Local => None,
        }
    }

    /// Whom the holder of the cell's key acts for, if it says so.
    #[must_use]
    pub fn person(&self) -> Option<&Person> {
        match self {
            Identity::Proven(credential) => credential.person.as_ref(),
            Identity::Anonymous | Identity::Local => None,
        }
    }

    /// When the authentication expires; `None` is never.
    #[must_use]
    pub fn expires(&self) -> Option<UnixTime> {
        match self {
            Identity::Proven(credential) => credential.expires,
            Identity::Anonymous | Identity::Local => None,
        }
    }

    /// How the connection is protected.
    #[must_use]
    pub fn protection(&self) -> Protection {
        match self {
            Identity::Proven(credential) => credential.protection,
            Identity::Anonymous | Identity::Local => Protection::default(),
        }
    }
}

/// Properties of an incoming call that a server knows before it reads a byte of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// Source address of the connection.
    pub peer: SocketAddr,
    /// Its Rx connection.
    pub connection: ConnKey,
    /// Its security class: 0 is rxnull.
    pub security_index: u8,
    /// Authenticated identity.
    pub identity: Identity,
}
