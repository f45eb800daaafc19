//! Handles of calls and connections, and the protocol's numbers: epoch, connection id, channel.

use crate::slab::Key;
use core::fmt;

/// Handle of a call of one endpoint, valid until it is released. A stale one finds nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub(crate) Key);

/// Handle of a connection, client or server, of one endpoint. A stale one finds nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub(crate) Key);

impl CallId {
    /// A small number, unique among the calls alive at one time: an index for tables.
    pub fn slot(self) -> usize {
        self.0.slot as usize
    }
}

impl ConnId {
    /// A small number, unique among the connections alive at one time: an index for tables.
    pub fn slot(self) -> usize {
        self.0.slot as usize
    }
}

impl fmt::Debug for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call {}.{}", self.0.slot, self.0.generation)
    }
}

impl fmt::Debug for ConnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "connection {}.{}", self.0.slot, self.0.generation)
    }
}

/// This endpoint's side of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// This endpoint opened the connection.
    Client,
    /// The peer opened the connection.
    Server,
}

/// A client process's number, chosen when it starts: docs/protocol/rx.md "3. Connections, ids, epochs".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Epoch(pub u32);

impl Epoch {
    /// True when the epoch and connection id alone name a connection, whatever its source address.
    pub const fn is_global(self) -> bool {
        self.0 & 0x8000_0000 != 0
    }
}

/// A connection's number within an epoch; the two low bits are zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cid(pub u32);

impl Cid {
    /// The connection that a header's cid field belongs to.
    pub const fn of(field: u32) -> Self {
        Cid(field & !CHANNEL_MASK)
    }

    /// The header field for a channel of this connection.
    pub const fn with_channel(self, channel: usize) -> u32 {
        self.0 | (channel as u32 & CHANNEL_MASK)
    }
}

/// Calls that can run at once on one connection.
pub const CHANNELS: usize = 4;
pub(crate) const CHANNEL_MASK: u32 = 3;
