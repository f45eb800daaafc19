//! The restored volume's entry in the location database.

use afs_wire::ids::VolumeId;
use afs_wire::vl::{Entry, EntryFlags, LockOperation, NameChars, ReleaseType, SiteFlags};
use afs_wire::xdr::BoundedVec;

use super::RestorePlan;
use crate::error::AdminResult;
use crate::group::home;
use crate::ops::EditSites;
use crate::{Admin, ServerPartition};

impl RestorePlan {
    /// Creates the entry, or changes the existing one. Idempotent.
    pub(super) async fn enter(&self, admin: &Admin, keep_old: bool) -> AdminResult {
        let known = match admin.entry_named(&self.name).await? {
            Some(known) => Some(known),
            None => admin.entry(self.volume).await?,
        };
        let (site, exists) = if self.read_only {
            (SiteFlags::RO_VOLUME, EntryFlags::RO_EXISTS)
        } else {
            (SiteFlags::RW_VOLUME, EntryFlags::RW_EXISTS)
        };
        let Some(known) = known else {
            let mut ids = [VolumeId(0); 3];
            ids[usize::from(self.read_only)] = self.volume;
            let entry = Entry {
                name: NameChars::truncated(self.name.as_bytes()),
                sites: BoundedVec::first_of([self.place.site(site)]),
                ids,
                flags: exists,
                ..Entry::default()
            };
            return admin.create_entry(&entry).await;
        };
        let any = known.ids.iter().copied().find(|id| id.0 != 0).unwrap_or_default();
        let mut entry = admin.lock_entry(any, &self.name, LockOperation::DUMP).await?;
        let old = home(&entry).filter(|old| !self.read_only && *old != self.place);
        entry.flags = entry.flags.with(exists);
        if let Some(id) = entry.ids.get_mut(usize::from(self.read_only)) {
            *id = self.volume;
        }
        let mut sites = entry.sites.to_vec();
        let same = |s: &afs_wire::vl::Site| {
            s.flags.contains(site) && (!self.read_only || ServerPartition::from(s) == self.place)
        };
        if sites.iter().any(same) {
            entry.sites.iter_mut_sites(|s| {
                if same(s) {
                    (s.server, s.partition) = (self.place.server, self.place.partition);
                }
            });
        } else {
            sites.push(self.place.site(site));
            entry.sites = BoundedVec::first_of(sites);
        }
        admin.replace_entry(&entry, ReleaseType::ALL).await?;
        match old {
            Some(old) if !keep_old => admin.delete_volume(old, self.volume, false).await.map(drop),
            _ => Ok(()),
        }
    }
}
