//! Site of a volume: server and partition.

use std::fmt;
use std::net::Ipv4Addr;

use afs_wire::ids::{PartitionId, PartitionNumber};
use afs_wire::vl::{Site, SiteFlags};
use serde::{Deserialize, Serialize};

/// A partition of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ServerPartition {
    /// An address of the server.
    pub server: Ipv4Addr,
    /// The partition's number on the wire.
    #[serde(with = "crate::wire_numbers::partition")]
    pub partition: PartitionNumber,
}

impl ServerPartition {
    /// A partition of a server.
    #[must_use]
    pub fn new(server: Ipv4Addr, partition: PartitionId) -> Self {
        Self { server, partition: PartitionNumber::from(partition) }
    }

    /// As a site of an entry.
    #[must_use]
    pub fn site(self, flags: SiteFlags) -> Site {
        Site { server: self.server, partition: self.partition, flags }
    }
}

impl From<&Site> for ServerPartition {
    fn from(site: &Site) -> Self {
        Self { server: site.server, partition: site.partition }
    }
}

impl fmt::Display for ServerPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.partition.check() {
            Some(partition) => write!(f, "{} {partition}", self.server),
            None => write!(f, "{} partition {}", self.server, self.partition.0),
        }
    }
}
