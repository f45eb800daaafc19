//! Scan of the cell for groups that may be inconsistent.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use afs_rpc::CallError;
use afs_rpc::future::join_all;
use afs_wire::error::AbortCode;
use afs_wire::ids::{PartitionId, VolumeId, VolumeKind};
use afs_wire::vl::{Attributes, Entry, GetAddrs, GetAddrsU, GetNewVolumeId, ServerKey};
use afs_wire::vol::{InfoStatus, VolumeInfo};

use super::entry::{expected, fits, is_locked};
use super::finding::SilentServer;
use crate::error::{AdminError, AdminResult};
use crate::ops::{IllPartition, PartitionState};
use crate::{Admin, ServerPartition};

/// Servers that are scanned concurrently.
const SERVERS_AT_ONCE: usize = 8;
/// Most groups that one check examines closely: more would mean another cause than entries.
pub(super) const SUSPECTS_MAX: usize = 10_000;

/// The largest index of a server.
const INDEX_MAX: i32 = 254;

/// Volumes of a group found at sites that the location database does not have.
pub(super) type UnlistedVolumes = BTreeSet<(ServerPartition, VolumeId)>;

/// The partitions of each server, or the error of one that did not reply.
pub(super) type Servers = BTreeMap<Ipv4Addr, Result<Vec<PartitionId>, String>>;

/// Result of the scan.
#[derive(Default)]
pub(super) struct ScanResult {
    pub(super) servers: Servers,
    /// Partitions that are not well.
    pub(super) ill: Vec<IllPartition>,
    /// By an id of the group.
    pub(super) suspects: BTreeMap<VolumeId, UnlistedVolumes>,
    pub(super) volumes: u64,
    pub(super) largest: VolumeId,
    pub(super) more: bool,
}

/// The entries of the location database for one server.
#[derive(Default)]
struct ServerEntries {
    /// By an id of the group.
    entries: BTreeMap<VolumeId, KnownEntry>,
    /// The group of every volume id.
    groups: BTreeMap<VolumeId, VolumeId>,
}

/// The part of an entry that is kept during the scan of its server.
struct KnownEntry {
    entry: Entry,
    /// Volumes that must be on this server and were not seen yet.
    missing: Vec<(ServerPartition, VolumeId)>,
}

impl ScanResult {
    /// Servers that did not reply.
    pub(super) fn silent(&self) -> Vec<SilentServer> {
        let silent = |(server, answer): (&Ipv4Addr, &Result<_, String>)| {
            let why = answer.as_ref().err()?.clone();
            Some(SilentServer { server: *server, why })
        };
        self.servers.iter().filter_map(silent).collect()
    }

    fn suspect(&mut self, key: VolumeId, seen: Option<(ServerPartition, VolumeId)>) {
        if self.suspects.len() >= SUSPECTS_MAX && !self.suspects.contains_key(&key) {
            self.more = true;
            return;
        }
        self.suspects.entry(key).or_default().extend(seen);
    }

    fn add(&mut self, other: ScanResult) {
        self.volumes += other.volumes;
        self.largest = self.largest.max(other.largest);
        self.more |= other.more;
        self.servers.extend(other.servers);
        self.ill.extend(other.ill);
        for (key, suspect) in other.suspects {
            self.suspect(key, None);
            if let Some(into) = self.suspects.get_mut(&key) {
                into.extend(suspect);
            }
        }
    }
}

impl Admin {
    /// Scans the cell, or one server.
    pub(super) async fn scan(&self, only: Option<Ipv4Addr>) -> AdminResult<ScanResult> {
        let servers = match only {
            Some(server) => vec![self.first_address(server).await?],
            None => self.all_servers().await?.into_iter().collect(),
        };
        let mut scanned = ScanResult::default();
        for some in servers.chunks(SERVERS_AT_ONCE) {
            for one in join_all(some.iter().map(|server| self.scan_at(*server))).await {
                scanned.add(one?);
            }
        }
        Ok(scanned)
    }

    /// Scans one group, at all sites of its entry.
    pub(super) async fn scan_one(&self, volume: &str) -> AdminResult<ScanResult> {
        let group = self.group(volume).await?;
        let mut scanned = ScanResult::default();
        scanned.suspect(key_of(&group.entry), None);
        Ok(scanned)
    }

    async fn scan_at(&self, server: Ipv4Addr) -> AdminResult<ScanResult> {
        self.progress().step(&format!("looking at server {server}"));
        let mut scanned = ScanResult::default();
        let mut known = ServerEntries::default();
        self.each_entry_at(Some(server), |entry| {
            if is_locked(entry) {
                scanned.suspect(key_of(entry), None);
            }
            known.remember(entry, server);
        })
        .await?;
        let partitions = self.partitions(server).await;
        for partition in partitions.as_ref().map_or(&[][..], Vec::as_slice) {
            let place = ServerPartition::new(server, *partition);
            // A server that becomes unreachable counts as one that was.
            let volumes = match self.volumes_on(place).await {
                Ok(volumes) => volumes,
                Err(error) if error.code() == Some(AbortCode::VOFFLINE) => {
                    scanned.ill.push(IllPartition { place, state: PartitionState::Offline });
                    known.leave_alone(place);
                    continue;
                }
                Err(error) => {
                    scanned.servers.insert(server, Err(error.to_string()));
                    return Ok(scanned);
                }
            };
            if matches!(self.partition_state(place).await, Ok(PartitionState::Failing)) {
                scanned.ill.push(IllPartition { place, state: PartitionState::Failing });
            }
            for info in &volumes {
                self.compare(&mut scanned, &mut known, place, info).await?;
            }
        }
        let partitions = partitions.map_err(|error| error.to_string());
        if partitions.is_ok() {
            for left in known.entries.values().filter(|known| !known.missing.is_empty()) {
                scanned.suspect(key_of(&left.entry), None);
            }
        }
        scanned.servers.insert(server, partitions);
        Ok(scanned)
    }

    async fn compare(
        &self,
        scanned: &mut ScanResult,
        known: &mut ServerEntries,
        place: ServerPartition,
        info: &VolumeInfo,
    ) -> AdminResult {
        scanned.volumes += 1;
        scanned.largest = scanned.largest.max(info.id);
        let Some(found) = known.groups.get(&info.id).and_then(|key| known.entries.get_mut(key)) else {
            let key = self.group_of(info).await?;
            scanned.suspect(key, Some((place, info.id)));
            return Ok(());
        };
        found.missing.retain(|(at, id)| *id != info.id || *at != place);
        if !fits(&found.entry, place, info) {
            scanned.suspect(key_of(&found.entry), Some((place, info.id)));
        }
        Ok(())
    }

    /// The group of a volume that is not where an entry has it: one with its id, or its parent's.
    async fn group_of(&self, info: &VolumeInfo) -> AdminResult<VolumeId> {
        if let Some(entry) = self.entry(info.id).await? {
            return Ok(key_of(&entry));
        }
        let known = info.status == InfoStatus::OK && info.parent_id.0 != 0;
        // A backup volume with a name of its own may be a snapshot, which has an entry of its own.
        let snapshot = info.kind.check() == Some(VolumeKind::Backup)
            && !info.name.to_string().ends_with(VolumeKind::Backup.suffix());
        if !known || snapshot {
            return Ok(info.id);
        }
        let parent = self.entry(info.parent_id).await?;
        Ok(parent.map_or(info.parent_id, |entry| key_of(&entry)))
    }

    async fn all_servers(&self) -> AdminResult<BTreeSet<Ipv4Addr>> {
        let mut all = BTreeSet::new();
        let reply = self.locate(&GetAddrs { handle: 0, spare: 0 }).await;
        let reply = reply.map_err(|e| AdminError::call("Could not list the servers", None, e))?;
        // A word that begins with 0xff is not an address, but a handle of OpenAFS's: such servers are listed
        // by index.
        let (handles, addresses): (Vec<u32>, Vec<u32>) =
            reply.addresses.iter().partition(|word| **word >> 24 == 0xff);
        all.extend(addresses.into_iter().map(Ipv4Addr::from));
        if !handles.is_empty() {
            self.servers_by_index(&mut all).await?;
        }
        self.each_entry_at(None, |entry| all.extend(entry.sites.iter().map(|site| site.server))).await?;
        Ok(all)
    }

    async fn servers_by_index(&self, all: &mut BTreeSet<Ipv4Addr>) -> AdminResult {
        for index in 1..=INDEX_MAX {
            match self.locate(&GetAddrsU { query: ServerKey::Index(index).into() }).await {
                Ok(reply) => all.extend(reply.addresses.first()),
                Err(CallError::Abort(AbortCode::VL_NOENT)) => {}
                Err(CallError::Abort(_)) => return Ok(()),
                Err(error) => return Err(AdminError::call("Could not list the servers", None, error)),
            }
        }
        Ok(())
    }

    /// The address that the location database uses for a server.
    async fn first_address(&self, server: Ipv4Addr) -> AdminResult<Ipv4Addr> {
        match self.locate(&GetAddrsU { query: ServerKey::Address(server).into() }).await {
            Ok(reply) => Ok(reply.addresses.first().copied().unwrap_or(server)),
            Err(CallError::Abort(_)) => Ok(server),
            Err(error) => Err(AdminError::call(format!("Could not look up server {server}"), None, error)),
        }
    }

    async fn each_entry_at(&self, server: Option<Ipv4Addr>, each: impl FnMut(&Entry)) -> AdminResult {
        match self.each_entry(Attributes { server, ..Attributes::default() }, each).await {
            // The reply of OpenAFS's database about an unknown server.
            Err(error) if error.code() == Some(AbortCode::VL_NOENT) => Ok(()),
            listed => listed,
        }
    }

    /// The id that the next new volume gets.
    pub(super) async fn next_id(&self) -> AdminResult<VolumeId> {
        let reply = self.locate(&GetNewVolumeId { count: 0 }).await;
        reply.map(|r| r.first).map_err(|e| AdminError::call("Could not read the counter of volumes", None, e))
    }

    /// Allocates all ids up to the largest in use.
    pub(super) async fn raise_counter(&self, largest: VolumeId, next: VolumeId) -> AdminResult {
        let count = largest.0.saturating_sub(next.0).saturating_add(1);
        let reply = self.locate(&GetNewVolumeId { count }).await;
        reply.map(drop).map_err(|e| AdminError::call("Could not raise the counter of volumes", None, e))
    }
}

/// An id under which the entry is found.
pub(super) fn key_of(entry: &Entry) -> VolumeId {
    entry.ids.iter().copied().find(|id| id.0 != 0).unwrap_or_default()
}

impl ServerEntries {
    /// Nothing is known of the volumes of a partition: they are not missing.
    fn leave_alone(&mut self, place: ServerPartition) {
        self.entries.values_mut().for_each(|known| known.missing.retain(|(at, _)| *at != place));
    }

    fn remember(&mut self, entry: &Entry, server: Ipv4Addr) {
        let here = entry.sites.iter().filter(|site| site.server == server);
        let missing =
            here.flat_map(|s| expected(entry, s).map(move |id| (ServerPartition::from(s), id))).collect();
        let key = key_of(entry);
        self.groups.extend(entry.ids.iter().filter(|id| id.0 != 0).map(|id| (*id, key)));
        self.entries.insert(key, KnownEntry { entry: entry.clone(), missing });
    }
}
