//! Who calls.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::credential::{Credential, Principal, Protection};

/// An Rx connection as its server knows it (`docs/protocol/rx.md` "3. Connections, ids, epochs").
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

/// On whose behalf a call is made, as far as its connection proves it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Identity {
    /// Nobody in particular.
    #[default]
    Anonymous,
    /// The owner of this cell, in tests and simulations: the call comes from an address that
    /// [`Rx::trust`](crate::Rx::trust) named. An administrator.
    Local,
    /// Whoever the connection's security class has proven it to be.
    Proven(Arc<Credential>),
}

impl Identity {
    /// Who was proven, if anybody.
    #[must_use]
    pub fn principal(&self) -> Option<&Principal> {
        match self {
            Identity::Proven(credential) => Some(&credential.principal),
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

/// What a server knows about one incoming call before it reads a byte of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// Where the connection comes from.
    pub peer: SocketAddr,
    /// Its Rx connection.
    pub connection: ConnKey,
    /// Its security class: 0 is rxnull.
    pub security_index: u8,
    /// For whom it speaks.
    pub identity: Identity,
}
