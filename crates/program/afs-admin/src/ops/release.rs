//! `vos release`: brings every read-only site to the state of the read-write volume.
//!
//! A site shows the new state only when it is complete. The entry records which sites have it while the
//! release is in progress, so clients keep to one state; a release that did not reach every site is finished
//! by the next one, or backed out from the sites that do not have it yet.

mod back_out;
mod decide;
mod sites;

use afs_wire::ids::{VolumeId, VolumeKind};
use afs_wire::vl::{Entry, EntryFlags, LockOperation, ReleaseType, SiteFlags};
use serde::{Deserialize, Serialize};

use super::Outcome;
use crate::calls::Attach;
use crate::error::{AdminError, AdminResult};
use crate::group::home;
use crate::journal::Job;
use crate::plan::Plan;
use crate::{Admin, ServerPartition};
use decide::Scope;

/// Parameters of a release.
#[derive(Clone, Debug, Default)]
pub struct ReleaseOptions {
    /// Name or id of the read-write volume.
    pub volume: String,
    /// Send everything to every site, even if nothing has changed.
    pub force: bool,
    /// Instead of a release: end one that did not reach every site. Sites with the new state keep it, the
    /// others keep the old one.
    pub back_out: bool,
}

/// Result of a release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// The read-write volume.
    pub volume: VolumeId,
    /// The sites that were updated.
    pub sites: Vec<ServerPartition>,
    /// Whether nothing had changed since the last release, so that nothing was done.
    pub unchanged: bool,
}

/// See [`Plan`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ReleasePlan {
    #[serde(with = "crate::wire_numbers::volume")]
    pub(crate) volume: VolumeId,
    pub(crate) name: String,
    pub(crate) step: Step,
    home: ServerPartition,
    force: bool,
    /// The group's read-only volume id.
    #[serde(with = "crate::wire_numbers::volume")]
    read_only: VolumeId,
    /// Whether the clone that is sent is temporary.
    temporary: bool,
    /// At the last step: whether every site has the new state.
    #[serde(default)]
    all: bool,
}

/// Steps of a release. From the second on it is completed, as far as servers reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Step {
    /// The entry is locked.
    Lock,
    /// The read-write volume is cloned, or its clone is updated.
    Clone,
    /// The clone is sent to the sites.
    Send,
    /// A temporary clone is deleted, the marks in the entry are cleared, the entry is unlocked.
    Finish,
    /// A release is backed out.
    BackOut,
}

impl Admin {
    /// Releases a volume to its read-only sites.
    ///
    /// # Errors
    /// No such volume, no sites, or sites that were not reached: these keep the old state, and the next
    /// release brings them the new one.
    pub async fn release(&self, options: ReleaseOptions) -> AdminResult<Released> {
        let doing = format!("Could not release volume {}", options.volume);
        let (group, home) = self.read_write(&doing, &options.volume).await?;
        Self::check_unlocked(&group.entry)?;
        if group.read_only_sites().next().is_none() {
            return Err(AdminError::refused(doing, "it has no read-only sites")
                .with_hint(format!("add one with `andrew vos addsite SERVER PARTITION {}`", group.name())));
        }
        if options.back_out {
            return self.back_out(&group, home).await;
        }
        if !options.force && self.is_released(&group.entry, home).await? {
            return Ok(Released { volume: group.id(), sites: Vec::new(), unchanged: true });
        }
        let plan = ReleasePlan {
            volume: group.id(),
            name: group.name(),
            step: Step::Lock,
            home,
            force: options.force,
            read_only: group.entry.id(VolumeKind::ReadOnly),
            temporary: !has_clone_at(&group.entry, home),
            all: false,
        };
        let job = Job::begin(self, &plan.clone().into()).await?;
        let mut plan = plan;
        match plan.run(self, &job).await {
            // The sites' states are in the entry: there is nothing to resume.
            Ok((sites, failed)) => {
                job.end().await?;
                let released = Released { volume: plan.volume, sites, unchanged: false };
                failed.map_or(Ok(released), Err)
            }
            Err(error) if plan.step == Step::Lock && error.is_refusal() => {
                job.end().await?;
                Err(error)
            }
            Err(error) => Err(self.give_up(plan.into(), job, error).await),
        }
    }
}

/// The sites that have the new state, and the error of the first that has not.
type UpdatedSites = (Vec<ServerPartition>, Option<AdminError>);

/// Whether the site of the read-write volume is also a read-only site: that copy is a clone.
fn has_clone_at(entry: &Entry, home: ServerPartition) -> bool {
    entry.sites.iter().any(|s| s.flags.contains(SiteFlags::RO_VOLUME) && ServerPartition::from(s) == home)
}

impl ReleasePlan {
    pub(crate) fn others(&self) -> Vec<VolumeId> {
        vec![self.read_only]
    }

    pub(crate) fn word(&self) -> &'static str {
        "release"
    }

    pub(crate) fn says(&self) -> String {
        let name = &self.name;
        match self.step {
            Step::Lock => format!("locking {name}"),
            Step::Clone => format!("cloning {name} on {}", self.home),
            Step::Send => format!("sending {name} to its read-only sites"),
            Step::Finish => format!("finishing the release of {name}"),
            Step::BackOut => format!("taking the release of {name} back"),
        }
    }

    async fn next(&mut self, step: Step, job: &Job) -> AdminResult {
        self.step = step;
        job.step(&Plan::from(self.clone())).await
    }

    async fn run(&mut self, admin: &Admin, job: &Job) -> AdminResult<UpdatedSites> {
        let entry = admin.lock_entry(self.volume, &self.name, LockOperation::RELEASE).await?;
        if home(&entry) != Some(self.home) {
            return Err(AdminError::failed(
                format!("Could not release {}", self.name),
                "somebody else moved it meanwhile",
            ));
        }
        self.bring_up(admin, job, entry).await
    }

    /// The work under the lock. Idempotent.
    async fn bring_up(&mut self, admin: &Admin, job: &Job, mut entry: Entry) -> AdminResult<UpdatedSites> {
        if self.read_only.0 == 0 {
            self.read_only = admin.new_id().await?;
            if let Some(id) = entry.ids.get_mut(VolumeKind::ReadOnly.index()) {
                *id = self.read_only;
            }
            admin.replace_entry(&entry, ReleaseType::NONE).await?;
        }
        self.next(Step::Clone, job).await?;
        let scope = self.scope(admin, &entry).await?;
        if scope != Scope::Unreached {
            self.clone_source(admin, &mut entry, scope).await?;
        }
        self.next(Step::Send, job).await?;
        let (reached, failed) = self.send_to_sites(admin, &mut entry, scope).await?;
        self.all = failed.is_none();
        self.next(Step::Finish, job).await?;
        self.finish(admin, entry).await?;
        Ok((reached, failed))
    }

    /// Makes the clone that is sent, and marks in the entry the sites that have to get it.
    async fn clone_source(&self, admin: &Admin, entry: &mut Entry, scope: Scope) -> AdminResult {
        if self.temporary {
            admin.delete_volume(self.home, self.read_only, true).await?;
            let source = admin.take_existing(self.home, self.volume, Attach::BUSY.breaking(true)).await?;
            let cloned = source.clone_as(self.read_only, CLONE_NAME, VolumeKind::ReadOnly).await;
            source.end_after(cloned).await?;
        } else if scope != Scope::NewSites {
            admin
                .make_clone(self.home, self.volume, self.read_only, &self.name, VolumeKind::ReadOnly)
                .await?;
        }
        if scope == Scope::Everything {
            entry.sites.iter_mut_sites(|site| {
                if site.flags.contains(SiteFlags::RO_VOLUME) {
                    site.flags = site.flags.without(SiteFlags::NEW_REPSITE);
                }
                if site.flags.contains(SiteFlags::RO_VOLUME) && ServerPartition::from(&*site) == self.home {
                    site.flags = site.flags.with(SiteFlags::NEW_REPSITE).without(SiteFlags::DONT_USE);
                }
            });
            if !self.temporary {
                entry.flags = entry.flags.with(EntryFlags::RO_EXISTS);
                admin.replace_entry(entry, ReleaseType::NONE).await?;
            }
        }
        Ok(())
    }

    /// Deletes temporary volumes, and unlocks. The marks stay if sites were not reached.
    async fn finish(&self, admin: &Admin, mut entry: Entry) -> AdminResult {
        if self.temporary {
            admin.delete_volume(self.home, self.read_only, true).await?;
        }
        if self.all {
            entry.clone_id = VolumeId(0);
            entry.sites.iter_mut_sites(|site| site.flags = site.flags.without(SiteFlags::NEW_REPSITE));
        }
        admin.replace_entry(&entry, ReleaseType::ALL).await
    }

    pub(crate) async fn resume(mut self, admin: &Admin, job: Job) -> AdminResult<Outcome> {
        let outcome = match self.step {
            Step::Lock => {
                admin.unlock_entry(self.volume, &self.name).await?;
                Outcome::Undone
            }
            Step::BackOut => {
                self.take_back(admin).await?;
                Outcome::Undone
            }
            Step::Clone | Step::Send => {
                self.break_all(admin).await?;
                let entry = admin.existing_entry(self.volume, &self.name).await?;
                // Every site that could be reached has it, and the entry says which could not.
                if let (_, Some(error)) = self.bring_up(admin, &job, entry).await? {
                    admin.progress().warn(&error.to_string());
                }
                Outcome::Completed
            }
            Step::Finish => {
                let entry = admin.existing_entry(self.volume, &self.name).await?;
                self.finish(admin, entry).await?;
                Outcome::Completed
            }
        };
        job.end().await?;
        Ok(outcome)
    }

    /// Ends transactions that the interrupted release left open. A site that does not reply is left to the
    /// release.
    async fn break_all(&self, admin: &Admin) -> AdminResult {
        let entry = admin.existing_entry(self.volume, &self.name).await?;
        admin.break_transactions(self.home, self.volume).await?;
        admin.break_transactions(self.home, self.read_only).await?;
        for site in entry.sites.iter().filter(|s| s.flags.contains(SiteFlags::RO_VOLUME)) {
            let _ = admin.break_transactions(ServerPartition::from(site), self.read_only).await;
        }
        Ok(())
    }
}

/// Changing the sites of an entry in place.
pub(crate) trait EditSites {
    /// Calls `edit` with every site.
    fn iter_mut_sites(&mut self, edit: impl FnMut(&mut afs_wire::vl::Site));
}

impl<const MAX: usize> EditSites for afs_wire::xdr::BoundedVec<afs_wire::vl::Site, MAX> {
    fn iter_mut_sites(&mut self, edit: impl FnMut(&mut afs_wire::vl::Site)) {
        let mut sites = self.to_vec();
        sites.iter_mut().for_each(edit);
        *self = Self::first_of(sites);
    }
}

const CLONE_NAME: &str = "readonly-clone-temp";
