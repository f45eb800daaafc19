//! Second half of a move, from the switch on: idempotent steps, repeated until done.

use afs_wire::ids::VolumeKind;
use afs_wire::vl::{Entry, EntryFlags, ReleaseType, SiteFlags};
use afs_wire::vol::VolumeFlags;
use afs_wire::xdr::BoundedVec;

use super::{MovePlan, Step};
use crate::calls::{Attach, Transaction};
use crate::error::AdminResult;
use crate::group::home;
use crate::journal::Job;
use crate::ops::Outcome;
use crate::{Admin, ServerPartition};

impl MovePlan {
    /// Brings the target on line and enters its site into the location database.
    pub(super) async fn switch(&mut self, admin: &Admin, target: &Transaction) -> AdminResult {
        let published = target.set_flags(VolumeFlags(0)).await;
        target.end_after(published).await?;
        let entry = admin.existing_entry(self.volume, &self.name).await?;
        if home(&entry) == Some(self.to) {
            return Ok(());
        }
        // The entry stays locked until the source is gone.
        admin.replace_entry(&self.switched(entry), ReleaseType::NONE).await
    }

    fn switched(&self, mut entry: Entry) -> Entry {
        let moved = |mut site: afs_wire::vl::Site| {
            if site.flags.contains(SiteFlags::RW_VOLUME) && ServerPartition::from(&site) == self.from {
                site.server = self.to.server;
                site.partition = self.to.partition;
            }
            site
        };
        entry.sites = BoundedVec::first_of(entry.sites.iter().copied().map(moved));
        entry.flags = entry.flags.without(EntryFlags::BACK_EXISTS);
        entry
    }

    /// Continues from the switch, wherever it stopped.
    pub(super) async fn complete(&mut self, admin: &Admin, job: &Job) -> AdminResult<Outcome> {
        if self.step == Step::Switch {
            let target = admin.take_existing(self.to, self.volume, Attach::OFFLINE.breaking(true)).await?;
            self.switch(admin, &target).await?;
        }
        self.forget_and_clean(admin, job).await?;
        Ok(Outcome::Completed)
    }

    async fn forget_and_clean(&mut self, admin: &Admin, job: &Job) -> AdminResult {
        if self.step != Step::Clean {
            self.next(Step::Forget, job).await?;
            let attach = Attach::BUSY.breaking(true);
            if let Some(source) = admin.take(self.from, self.volume, attach).await? {
                self.forget_held(&source).await?;
            }
        }
        self.next(Step::Clean, job).await?;
        self.clean(admin).await
    }

    /// Notifies the clients of the source that it moved, and deletes it.
    pub(super) async fn forget_held(&self, source: &Transaction) -> AdminResult {
        let gone = async {
            if self.from.server != self.to.server {
                source.set_forwarding(self.to.server).await?;
            }
            source.delete().await
        };
        source.end_after(gone.await).await
    }

    pub(super) async fn clean(&self, admin: &Admin) -> AdminResult {
        if self.backup.0 != 0 {
            admin.delete_volume(self.from, self.backup, true).await?;
        }
        if self.clone.0 != 0 {
            admin.delete_volume(self.from, self.clone, true).await?;
        }
        self.switch_snapshots(admin).await?;
        let mut entry = admin.existing_entry(self.volume, &self.name).await?;
        if self.backup.0 == 0 {
            return admin.unlock_entry(self.volume, &self.name).await;
        }
        // The old backup state stays behind; a backup volume with the state of the move is better than none.
        match admin.make_clone(self.to, self.volume, self.backup, &self.name, VolumeKind::Backup).await {
            Ok(()) => entry.flags = entry.flags.with(EntryFlags::BACK_EXISTS),
            Err(error) => {
                admin
                    .progress()
                    .warn(&format!("the backup volume of {} could not be made anew: {error}", self.name));
            }
        }
        admin.replace_entry(&entry, ReleaseType::ALL).await
    }
}
