//! `vos release --back-out`: ends a release that did not reach every site.

use afs_wire::ids::VolumeKind;
use afs_wire::vl::{Entry, LockOperation, ReleaseType, Site, SiteFlags};

use super::{EditSites, ReleasePlan, Released, Step, has_clone_at};
use crate::error::AdminResult;
use crate::journal::Job;
use crate::{Admin, Group, ServerPartition};

impl Admin {
    pub(super) async fn back_out(&self, group: &Group, home: ServerPartition) -> AdminResult<Released> {
        let plan = ReleasePlan {
            volume: group.id(),
            name: group.name(),
            step: Step::Lock,
            home,
            force: false,
            read_only: group.entry.id(VolumeKind::ReadOnly),
            temporary: !has_clone_at(&group.entry, home),
            all: false,
        };
        let job = Job::begin(self, &plan.clone().into()).await?;
        let mut plan = plan;
        match plan.run_back_out(self, &job).await {
            Ok(()) => {
                job.end().await?;
                Ok(Released { volume: plan.volume, ..Released::default() })
            }
            Err(error) if plan.step == Step::Lock && error.is_refusal() => {
                job.end().await?;
                Err(error)
            }
            Err(error) => Err(self.give_up(plan.into(), job, error).await),
        }
    }
}

impl ReleasePlan {
    async fn run_back_out(&mut self, admin: &Admin, job: &Job) -> AdminResult {
        admin.lock_entry(self.volume, &self.name, LockOperation::RELEASE).await?;
        self.next(Step::BackOut, job).await?;
        self.take_back(admin).await
    }

    /// Sites with the new state keep it; incomplete copies at new sites are deleted; the others keep the old
    /// state. If no site has the new state, the entry is restored to that before the release.
    pub(super) async fn take_back(&self, admin: &Admin) -> AdminResult {
        self.break_all(admin).await?;
        let mut entry = admin.existing_entry(self.volume, &self.name).await?;
        let (new, old): (Vec<Site>, Vec<Site>) =
            sites(&entry).into_iter().partition(|s| s.flags.contains(SiteFlags::NEW_REPSITE));
        for site in old.iter().filter(|s| s.flags.contains(SiteFlags::DONT_USE)) {
            let place = ServerPartition::from(site);
            let half_made = admin.volume_at(place, self.read_only).await?.is_some_and(|i| i.destroy_me != 0);
            if half_made {
                admin.delete_volume(place, self.read_only, true).await?;
            }
        }
        if self.temporary {
            admin.delete_volume(self.home, self.read_only, true).await?;
        }
        // While states differ, clients are kept to the new one.
        if new.is_empty() || old.is_empty() {
            entry.sites.iter_mut_sites(|site| site.flags = site.flags.without(SiteFlags::NEW_REPSITE));
        }
        admin.replace_entry(&entry, ReleaseType::ALL).await
    }
}

fn sites(entry: &Entry) -> Vec<Site> {
    entry.sites.iter().filter(|s| s.flags.contains(SiteFlags::RO_VOLUME)).copied().collect()
}
