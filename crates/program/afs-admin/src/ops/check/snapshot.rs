//! Snapshot of one group, taken at all its sites.

use std::collections::{BTreeMap, BTreeSet};

use afs_wire::error::AbortCode;
use afs_wire::ids::{VolumeId, VolumeKind};
use afs_wire::vl::Entry;
use afs_wire::vol::{InfoStatus, VolumeInfo};
use afs_wire::volname;

use super::scan::{ScanResult, Servers, UnlistedVolumes};
use crate::error::AdminResult;
use crate::ops::{IllPartition, PartitionState};
use crate::{Admin, ServerPartition};

/// The state of a group.
#[derive(Debug, Default)]
pub(super) struct GroupState {
    pub(super) key: VolumeId,
    pub(super) entry: Option<Entry>,
    /// Its volumes, with their sites.
    pub(super) seen: Vec<SiteVolume>,
    /// The sites that were asked, with their replies.
    pub(super) asked: BTreeMap<ServerPartition, SiteReply>,
    /// Volumes that are snapshots according to their server.
    pub(super) snapshots: BTreeSet<VolumeId>,
    /// Names in the headers that belong to other groups.
    pub(super) taken: BTreeSet<String>,
    /// Whether some server of the cell does not reply, or some partition is off line.
    pub(super) some_silent: bool,
}

/// A volume at a site.
#[derive(Clone, Copy, Debug)]
pub(super) struct SiteVolume {
    pub(super) place: ServerPartition,
    pub(super) info: VolumeInfo,
}

/// Reply of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SiteReply {
    /// It replied.
    Answered,
    /// Its server does not reply.
    Silent,
    /// Its server has no such partition at present.
    NoPartition,
    /// The partition is off line.
    Offline,
}

impl SiteVolume {
    /// Its kind; `None` while a transaction holds it.
    pub(super) fn kind(&self) -> Option<VolumeKind> {
        self.info.kind.check().filter(|_| !self.is_held())
    }

    pub(super) fn is_held(&self) -> bool {
        self.info.status == InfoStatus::BUSY
    }

    pub(super) fn name(&self) -> String {
        self.info.name.to_string()
    }

    /// Whether an operation created it for itself.
    pub(super) fn is_temporary(&self) -> bool {
        !self.is_held() && (self.info.destroy_me != 0 || TEMPORARY.contains(&self.name().as_str()))
    }
}

/// Names of the clones that `move`, `copy` and `release` make, of OpenAFS's tools and ours.
const TEMPORARY: [&str; 3] = ["move-clone-temp", "copy-clone-temp", "readonly-clone-temp"];

impl GroupState {
    /// All ids related to it.
    pub(super) fn ids(&self) -> Vec<VolumeId> {
        let entry = self.entry.iter().flat_map(|e| e.ids.into_iter().chain([e.clone_id]));
        let seen = self.seen.iter().flat_map(|s| [s.info.id, s.info.parent_id]);
        let all: BTreeSet<_> = entry.chain(seen).chain([self.key]).filter(|id| id.0 != 0).collect();
        all.into_iter().collect()
    }

    /// The sites whose partitions are off line.
    pub(super) fn offline(&self) -> impl Iterator<Item = ServerPartition> {
        let offline = self.asked.iter().filter(|(_, reply)| **reply == SiteReply::Offline);
        offline.map(|(place, _)| *place)
    }

    pub(super) fn answers(&self, place: ServerPartition) -> bool {
        self.asked.get(&place) == Some(&SiteReply::Answered)
    }
}

impl Admin {
    pub(super) async fn take_snapshot(
        &self,
        key: VolumeId,
        suspect: &UnlistedVolumes,
        scanned: &ScanResult,
    ) -> AdminResult<GroupState> {
        let servers = &scanned.servers;
        let is_offline = |ill: &IllPartition| ill.state == PartitionState::Offline;
        let entry = self.entry(key).await?;
        let mut case = GroupState {
            key,
            entry,
            some_silent: servers.values().any(Result::is_err) || scanned.ill.iter().any(is_offline),
            ..GroupState::default()
        };
        let sites = case.entry.iter().flat_map(|e| e.sites.iter().map(ServerPartition::from));
        let places: BTreeSet<_> = sites.chain(suspect.iter().map(|(place, _)| *place)).collect();
        let ids: BTreeSet<_> = case.ids().into_iter().chain(suspect.iter().map(|(_, id)| *id)).collect();
        for place in places {
            let asked = self.look_at(&mut case.seen, place, &ids, servers).await;
            case.some_silent |= asked == SiteReply::Offline;
            case.asked.insert(place, asked);
        }
        self.look_for_snapshots(&mut case).await?;
        self.look_for_names(&mut case).await?;
        Ok(case)
    }

    async fn look_at(
        &self,
        seen: &mut Vec<SiteVolume>,
        place: ServerPartition,
        ids: &BTreeSet<VolumeId>,
        servers: &Servers,
    ) -> SiteReply {
        let partitions = match servers.get(&place.server) {
            Some(Ok(partitions)) => partitions.clone(),
            Some(Err(_)) => return SiteReply::Silent,
            None => match self.partitions(place.server).await {
                Ok(partitions) => partitions,
                Err(_) => return SiteReply::Silent,
            },
        };
        if !partitions.iter().any(|p| Some(*p) == place.partition.check()) {
            return SiteReply::NoPartition;
        }
        for id in ids {
            match self.volume_at(place, *id).await {
                Ok(Some(info)) => seen.push(SiteVolume { place, info }),
                Ok(None) => {}
                Err(error) if error.code() == Some(AbortCode::VOFFLINE) => return SiteReply::Offline,
                Err(_) => return SiteReply::Silent,
            }
        }
        SiteReply::Answered
    }

    /// Backup volumes that the entry does not have may be snapshots, as their servers can tell.
    async fn look_for_snapshots(&self, case: &mut GroupState) -> AdminResult {
        let known = |id| case.entry.as_ref().is_some_and(|e| e.ids.contains(&id));
        let unknown: Vec<_> = case
            .seen
            .iter()
            .filter(|s| s.kind() == Some(VolumeKind::Backup) && !known(s.info.id))
            .copied()
            .collect();
        for seen in unknown {
            let all = self.snapshots_at(seen.place, seen.info.parent_id).await?;
            if all.iter().any(|s| s.volume == seen.info.id) {
                case.snapshots.insert(seen.info.id);
            }
        }
        Ok(())
    }

    async fn look_for_names(&self, case: &mut GroupState) -> AdminResult {
        let own = case.entry.as_ref().map(|e| e.name.to_string());
        let found: BTreeSet<_> = case.seen.iter().filter(|s| !s.is_held()).map(SiteVolume::name).collect();
        for name in found {
            let base = volname::split(&name).0.to_owned();
            if !base.is_empty() && own.as_ref() != Some(&base) && self.entry_named(&base).await?.is_some() {
                case.taken.insert(base);
            }
        }
        Ok(())
    }
}
