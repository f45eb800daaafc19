//! Choice of the volume that serves calls for a volume id.

use std::sync::Arc;

use afs_volume::{Volume, VolumeHeader};
use afs_wire::error::AbortCode;
use afs_wire::ids::VolumeId;

use super::fenced::is_fenced;
use super::{Site, VolumeState, VolumeStates, refusal};
use crate::partitions::Partitions;

/// A volume that serves clients, and its partition.
#[derive(Clone)]
pub(crate) struct Served {
    pub(crate) volume: Arc<Volume>,
    pub(crate) site: Site,
}

/// Whether other clients may see a volume: it is not being created, in which case it would vanish unless
/// completed.
pub(crate) fn is_published(header: &VolumeHeader) -> bool {
    !header.destroy
}

impl VolumeStates {
    /// The volume with an id, if it serves reads, or changes. If several partitions have it, the one that is
    /// closest to serving is used.
    pub(crate) fn serving(
        &self,
        partitions: &Partitions,
        id: VolumeId,
        change: bool,
    ) -> Result<(Served, Arc<VolumeHeader>), AbortCode> {
        let mut nearest: Option<(u8, AbortCode)> = None;
        for (partition, store) in partitions.iter() {
            let Some(volume) = store.volume(id) else { continue };
            let (site, header) = (Site { volume: id, partition }, volume.header());
            match self.obstacle(site, &header, change) {
                None => return Ok((Served { volume, site }, header)),
                Some(found) if nearest.is_none_or(|best| found.0 < best.0) => nearest = Some(found),
                Some(_) => {}
            }
        }
        Err(nearest.map_or_else(|| self.of_absent(partitions, id), |(_, code)| code))
    }

    /// What keeps a volume from serving, with a rank of how close it is to serving.
    fn obstacle(&self, site: Site, header: &VolumeHeader, change: bool) -> Option<(u8, AbortCode)> {
        let state = self.get(site);
        let held = refusal(state, change);
        match state {
            Some(VolumeState::Moved) => Some((0, AbortCode::VMOVED)),
            Some(VolumeState::Hidden) => Some((4, AbortCode::VNOVOL)),
            _ if !is_published(header) => Some((4, AbortCode::VNOVOL)),
            _ if is_fenced(header) => Some((0, AbortCode::VMOVED)),
            _ if !header.online => Some((3, AbortCode::VOFFLINE)),
            Some(VolumeState::Offline) => Some((2, AbortCode::VOFFLINE)),
            _ if change && self.is_unsettled() && header.is_writable() => Some((1, AbortCode::VBUSY)),
            _ => held.map(|code| (1, code)),
        }
    }
}
