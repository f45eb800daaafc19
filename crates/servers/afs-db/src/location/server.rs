//! Server record of the location database.

use std::net::Ipv4Addr;

use afs_wire::ids::Uuid;

use crate::{LocationError, Refusal};

/// Most addresses of one server (docs/protocol vldb.md "4. Semantics").
pub const ADDRESSES_MAX: usize = 15;
/// Most servers of a cell.
pub const SERVERS_MAX: u8 = 254;

/// Index of a server in the table, 1 to [`SERVERS_MAX`]; also its index in `GetAddrsU`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct ServerSlot(pub u8);

/// A file server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Server {
    /// Its index in the table.
    pub slot: ServerSlot,
    /// Its permanent name, once it has registered.
    pub uuid: Option<Uuid>,
    /// Changes with the address list of a registered server; clients refetch then.
    pub uniquifier: u32,
    /// One to [`ADDRESSES_MAX`] addresses; the first identifies the server in old-style entries.
    pub addresses: Vec<Ipv4Addr>,
}

impl Server {
    /// The address that identifies the server where only one fits.
    pub fn first_address(&self) -> Ipv4Addr {
        self.addresses.first().copied().unwrap_or(Ipv4Addr::UNSPECIFIED)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut row = vec![FORMAT, u8::from(self.uuid.is_some()), self.addresses.len() as u8];
        row.extend_from_slice(&self.uuid.unwrap_or(Uuid([0; 16])).0);
        row.extend_from_slice(&self.uniquifier.to_be_bytes());
        for address in &self.addresses {
            row.extend_from_slice(&address.octets());
        }
        row
    }

    pub(crate) fn decode(slot: ServerSlot, row: &[u8]) -> Result<Self, LocationError> {
        Self::read(slot, row).ok_or_else(|| Refusal::Damaged.into())
    }

    fn read(slot: ServerSlot, row: &[u8]) -> Option<Self> {
        let (head, rest) = row.split_at_checked(3)?;
        let (uuid, rest) = rest.split_at_checked(16)?;
        let (uniquifier, addresses) = rest.split_at_checked(4)?;
        if head[0] != FORMAT || addresses.len() != 4 * head[2] as usize {
            return None;
        }
        let uuid = Uuid(uuid.try_into().ok()?);
        Some(Server {
            slot,
            uuid: (head[1] != 0).then_some(uuid),
            uniquifier: u32::from_be_bytes(uniquifier.try_into().ok()?),
            addresses: addresses.chunks_exact(4).map(|a| Ipv4Addr::new(a[0], a[1], a[2], a[3])).collect(),
        })
    }
}

/// First byte of a stored server.
const FORMAT: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_server_reads_back() {
        for uuid in [None, Some(Uuid([7; 16]))] {
            let server = Server {
                slot: ServerSlot(4),
                uuid,
                uniquifier: 12,
                addresses: vec![Ipv4Addr::new(10, 1, 2, 3), Ipv4Addr::new(10, 1, 2, 4)],
            };
            let row = server.encode();
            assert_eq!(Server::decode(ServerSlot(4), &row), Ok(server));
            assert!(Server::decode(ServerSlot(4), &row[..row.len() - 1]).is_err());
        }
    }
}
