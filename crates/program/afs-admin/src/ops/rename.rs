//! `vos rename`: renames a volume group.

use afs_wire::ids::{VolumeId, VolumeKind};
use afs_wire::vl::{Entry, EntryFlags, LockOperation, NameChars, ReleaseType, SiteFlags};
use serde::{Deserialize, Serialize};

use super::Outcome;
use crate::calls::Attach;
use crate::error::{AdminError, AdminResult};
use crate::group::check_name;
use crate::journal::Job;
use crate::plan::Plan;
use crate::{Admin, ServerPartition};

/// See [`Plan`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RenamePlan {
    #[serde(with = "crate::wire_numbers::volume")]
    pub(crate) volume: VolumeId,
    /// The old name.
    pub(crate) name: String,
    pub(crate) step: Step,
    new: String,
}

/// Steps of a rename. From the second on it is completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Step {
    /// The entry is locked.
    Lock,
    /// The entry gets the new name, then every volume of the group.
    Name,
}

impl Admin {
    /// Renames a volume group.
    ///
    /// # Errors
    /// No such volume, a name that is taken or invalid, or a server that fails.
    pub async fn rename(&self, old: &str, new: &str) -> AdminResult {
        let doing = format!("Could not rename volume {old}");
        check_name(&doing, new)?;
        let group = self.group(old).await?;
        Self::check_unlocked(&group.entry)?;
        if self.entry_named(new).await?.is_some() {
            return Err(AdminError::refused(doing, format!("there is a volume {new} already")));
        }
        let (volume, name) = (group.id(), group.name());
        let mut plan = RenamePlan { volume, name, step: Step::Lock, new: new.to_owned() };
        let job = Job::begin(self, &plan.clone().into()).await?;
        match plan.run(self, &job).await {
            Ok(()) => job.end().await,
            Err(error) if plan.step == Step::Lock && error.is_refusal() => {
                job.end().await?;
                Err(error)
            }
            Err(error) => Err(self.give_up(plan.into(), job, error).await),
        }
    }
}

impl Admin {
    /// Gives the volumes of an entry its name; their servers have clients ask for the old and the new name again.
    pub(super) async fn name_volumes(&self, entry: &Entry, breaking: bool) -> AdminResult {
        let [volume, clones @ ..] = entry.ids;
        let alone = [volume, VolumeId(0), VolumeId(0)];
        for site in entry.sites.iter() {
            let place = ServerPartition::from(site);
            if site.flags.contains(SiteFlags::RW_VOLUME) {
                let ids = [volume, clones[0], clones[1]];
                self.name_one(place, VolumeKind::ReadWrite, entry, ids, breaking).await?;
                if entry.flags.contains(EntryFlags::BACK_EXISTS) {
                    self.name_one(place, VolumeKind::Backup, entry, alone, breaking).await?;
                }
            }
            if site.flags.contains(SiteFlags::RO_VOLUME) {
                self.name_one(place, VolumeKind::ReadOnly, entry, alone, breaking).await?;
            }
        }
        Ok(())
    }

    /// A copy that does not exist, such as at a site before its first release, needs no name.
    async fn name_one(
        &self,
        place: ServerPartition,
        kind: VolumeKind,
        entry: &Entry,
        ids: [VolumeId; 3],
        breaking: bool,
    ) -> AdminResult {
        let attach = if kind == VolumeKind::ReadWrite { Attach::BUSY } else { Attach::OFFLINE };
        let Some(held) = self.take(place, entry.id(kind), attach.breaking(breaking)).await? else {
            return Ok(());
        };
        let named = held.set_ids(&format!("{}{}", entry.name, kind.suffix()), kind, ids).await;
        held.end_after(named).await
    }
}

impl RenamePlan {
    pub(crate) fn word(&self) -> &'static str {
        "rename"
    }

    pub(crate) fn says(&self) -> String {
        format!("renaming {} to {}", self.name, self.new)
    }

    async fn run(&mut self, admin: &Admin, job: &Job) -> AdminResult {
        admin.lock_entry(self.volume, &self.name, LockOperation::DELETE).await?;
        self.step = Step::Name;
        job.step(&Plan::from(self.clone())).await?;
        self.name_all(admin, false).await
    }

    async fn name_all(&self, admin: &Admin, breaking: bool) -> AdminResult {
        let mut entry = admin.existing_entry(self.volume, &self.name).await?;
        entry.name = NameChars::truncated(self.new.as_bytes());
        // The entry first: users and mount points refer to it.
        admin.replace_entry(&entry, ReleaseType::NONE).await?;
        admin.name_volumes(&entry, breaking).await?;
        admin.unlock_entry(self.volume, &self.new).await
    }

    pub(crate) async fn resume(self, admin: &Admin, job: Job) -> AdminResult<Outcome> {
        let outcome = match self.step {
            Step::Lock => {
                admin.unlock_entry(self.volume, &self.name).await?;
                Outcome::Undone
            }
            Step::Name => {
                self.name_all(admin, job.is_taken_over()).await?;
                Outcome::Completed
            }
        };
        job.end().await?;
        Ok(outcome)
    }
}
