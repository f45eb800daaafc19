//! Queries to servers and location database: `vos examine`, `listvol`, `listvldb`, `partinfo`, `status`.
//! Nothing is changed.

use std::net::Ipv4Addr;

use afs_wire::ids::PartitionId;
use afs_wire::vl::{Attributes, Entry, EntryFlags};
use afs_wire::vol::{ListVolumes, TransactionInfo, VolumeInfo};

use crate::error::{AdminError, AdminResult};
use crate::{Admin, ServerPartition};

/// Filter of location entries; all if nothing is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryFilter {
    /// Only those with a site on this server.
    pub server: Option<Ipv4Addr>,
    /// Only those with a site on this partition.
    pub partition: Option<PartitionId>,
    /// Only locked ones.
    pub locked: bool,
}

/// Space on a partition, in units of 1024 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeSpace {
    /// Free space.
    pub free_kib: i64,
    /// Total space.
    pub total_kib: i64,
}

/// Makes the server read every volume's header, not only list the id.
const ALL_FIELDS: i32 = 1;

impl Admin {
    /// The volumes on a partition, according to its server; in no order.
    ///
    /// # Errors
    /// The server does not reply, or has no such partition.
    pub async fn volumes_on(&self, place: ServerPartition) -> AdminResult<Vec<VolumeInfo>> {
        let request = ListVolumes { partition: place.partition, flags: ALL_FIELDS };
        let reply = self.at(place.server, &request).await;
        let reply = reply.map_err(|e| {
            AdminError::call(format!("Could not list the volumes on {place}"), Some(place.server), e)
        })?;
        Ok(reply.volumes.iter().copied().collect())
    }

    /// The transactions of a server.
    ///
    /// # Errors
    /// It does not reply.
    pub async fn status(&self, server: Ipv4Addr) -> AdminResult<Vec<TransactionInfo>> {
        self.transactions(server).await
    }

    /// Entries of the location database, by name.
    ///
    /// # Errors
    /// No location server replies, or one with a list that does not end.
    pub async fn entries(&self, filter: &EntryFilter) -> AdminResult<Vec<Entry>> {
        let attributes = Attributes {
            server: filter.server,
            partition: filter.partition.map(Into::into),
            volume: None,
            flag: filter.locked.then_some(EntryFlags::LOCK_OPERATIONS.0),
        };
        let mut found = Vec::new();
        self.each_entry(attributes, |entry| found.push(entry.clone())).await?;
        found.sort_by_key(|entry| entry.name);
        Ok(found)
    }
}
