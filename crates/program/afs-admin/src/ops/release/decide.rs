//! Scope of a release: which sites need the new state.

use afs_rpc::future::join_all;
use afs_wire::ids::{UnixSeconds, VolumeId, VolumeKind};
use afs_wire::vl::{Entry, EntryFlags, Site, SiteFlags};
use afs_wire::vol::{InfoStatus, VolumeInfo};

use super::ReleasePlan;
use crate::error::AdminResult;
use crate::{Admin, ServerPartition};

/// The sites that are updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// A new clone is sent to every site.
    Everything,
    /// The last release did not reach every site: its clone is sent to those that it did not reach.
    Unreached,
    /// Nothing has changed, and some sites have no copy yet: it is sent to those only.
    NewSites,
}

impl Admin {
    /// Whether every site has the present state of the read-write volume.
    pub(super) async fn is_released(&self, entry: &Entry, home: ServerPartition) -> AdminResult<bool> {
        let marked = SiteFlags::DONT_USE.with(SiteFlags::NEW_REPSITE);
        let read_only = entry.id(VolumeKind::ReadOnly);
        if read_only.0 == 0
            || !entry.flags.contains(EntryFlags::RO_EXISTS)
            || entry.sites.iter().any(|s| s.flags.intersects(marked))
        {
            return Ok(false);
        }
        let source = self.free_volume_at(home, entry.id(VolumeKind::ReadWrite)).await?;
        let copies = self.copies(entry, read_only).await;
        // A change in the second of the clone may have missed it: then it is released once more.
        let has_it = |info: &Option<VolumeInfo>| {
            info.is_some_and(|i| {
                i.status == InfoStatus::OK && i.in_use && i.creation_date > last_change(&source)
            })
        };
        Ok(copies.iter().all(|(_, info)| has_it(info)))
    }

    /// The copy at each read-only site; `None` if there is none, or its server does not reply.
    pub(super) async fn copies(&self, entry: &Entry, read_only: VolumeId) -> Vec<(Site, Option<VolumeInfo>)> {
        let sites: Vec<Site> =
            entry.sites.iter().filter(|s| s.flags.contains(SiteFlags::RO_VOLUME)).copied().collect();
        let asked = sites.iter().map(|site| async move {
            (*site, self.volume_at(ServerPartition::from(site), read_only).await.ok().flatten())
        });
        join_all(asked).await
    }
}

impl ReleasePlan {
    pub(super) async fn scope(&self, admin: &Admin, entry: &Entry) -> AdminResult<Scope> {
        let is_ro = |s: &&Site| s.flags.contains(SiteFlags::RO_VOLUME);
        let count = |flag| entry.sites.iter().filter(is_ro).filter(|s| s.flags.contains(flag)).count();
        let all = entry.sites.iter().filter(is_ro).count();
        let (new, unused) = (count(SiteFlags::NEW_REPSITE), count(SiteFlags::DONT_USE));
        if self.force {
            return Ok(Scope::Everything);
        }
        let source = admin.free_volume_at(self.home, self.volume).await?;
        if new > 0 && new < all {
            // Sites with the new state and those that get it must not differ: only the very clone that was
            // sent will do.
            let clone = admin.volume_at(self.home, self.read_only).await?;
            let usable =
                clone.is_some_and(|c| c.status == InfoStatus::OK && source.creation_date <= c.creation_date);
            return Ok(if usable { Scope::Unreached } else { Scope::Everything });
        }
        if unused > 0 && unused < all {
            let copies = admin.copies(entry, self.read_only).await;
            let dates = copies
                .iter()
                .filter(|(site, _)| !site.flags.contains(SiteFlags::DONT_USE))
                .map(|(_, info)| info.map_or(UnixSeconds(0), |i| i.creation_date));
            let oldest = dates.min().unwrap_or_default();
            if last_change(&source).0 < oldest.0.saturating_sub(2) {
                return Ok(Scope::NewSites);
            }
        }
        Ok(Scope::Everything)
    }
}

/// Time of a volume's last change. A restored one may give old dates for its files.
fn last_change(volume: &VolumeInfo) -> UnixSeconds {
    volume.update_date.max(volume.creation_date)
}
