//! The interface for look-ups of cells that the configuration does not name.

use std::net::SocketAddr;
use std::time::Duration;

use afs_rpc::BoxFuture;
use afs_wire::ids::CellName;

/// Finds the location servers of a cell by its name, as DNS does (RFC 5864, RFC 1183).
///
/// Venus asks for names alone that a domain can have, limits the number of look-ups in progress and the time of each, and remembers the
/// replies. A reply is used for the cell of that name alone, and never for one that the configuration names.
pub trait CellResolver: Send + Sync + 'static {
    /// Looks a cell up. Dropping the future abandons the look-up.
    fn resolve(&self, cell: &CellName) -> BoxFuture<'static, Resolved>;
}

/// Outcome of the look-up of a cell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Resolved {
    /// The cell exists.
    Found {
        /// Addresses of its location servers. Venus uses the first eight that another machine can have.
        location_servers: Vec<SocketAddr>,
        /// How long they are valid: a minute to a day, whatever is said.
        ttl: Duration,
    },
    /// There is no such cell.
    NotFound {
        /// How long that is valid: half a minute to ten minutes, whatever is said.
        ttl: Duration,
    },
    /// No reply, for this reason.
    Failed(String),
}
