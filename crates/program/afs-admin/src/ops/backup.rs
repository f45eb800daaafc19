//! `vos backup` and `vos backupsys`: creates or updates the backup volume beside the read-write volume.

use std::net::Ipv4Addr;

use afs_wire::ids::{PartitionNumber, VolumeId, VolumeKind};
use afs_wire::vl::{Entry, EntryFlags, LockOperation, ReleaseType};
use afs_wire::volname;
use serde::{Deserialize, Serialize};

use super::{EntryFilter, Outcome};
use crate::calls::Attach;
use crate::error::AdminResult;
use crate::group::home;
use crate::journal::Job;
use crate::plan::Plan;
use crate::{Admin, ServerPartition};

/// A backup volume that was created or updated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackedUp {
    /// Name of the read-write volume.
    pub name: String,
    /// Id of the backup volume.
    pub backup: VolumeId,
}

/// Filter of volumes; all if nothing is given.
#[derive(Clone, Debug, Default)]
pub struct BackupAll {
    /// Only those on this server.
    pub server: Option<Ipv4Addr>,
    /// Only those on this partition.
    pub partition: Option<PartitionNumber>,
    /// Only those with one of these prefixes in their names.
    pub prefixes: Vec<String>,
    /// Not those with one of these prefixes in their names.
    pub except: Vec<String>,
    /// Only list them.
    pub dry_run: bool,
}

/// See [`Plan`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BackupPlan {
    #[serde(with = "crate::wire_numbers::volume")]
    pub(crate) volume: VolumeId,
    pub(crate) name: String,
    pub(crate) step: Step,
    place: ServerPartition,
    #[serde(with = "crate::wire_numbers::volume")]
    backup: VolumeId,
}

/// Steps of a backup. From the second on it is completed: there is nothing to undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Step {
    /// The entry is locked.
    Lock,
    /// The clone is created or updated, and entered.
    Clone,
}

impl Admin {
    /// Creates or updates the backup volume of a volume.
    ///
    /// # Errors
    /// No such volume, one with another operation in progress, or a server that fails.
    pub async fn backup(&self, volume: &str) -> AdminResult<BackedUp> {
        let doing = format!("Could not back up volume {volume}");
        let (group, place) = self.read_write(&doing, volume).await?;
        self.backup_entry(&group.entry, place).await
    }

    async fn backup_entry(&self, entry: &Entry, place: ServerPartition) -> AdminResult<BackedUp> {
        Self::check_unlocked(entry)?;
        let (volume, name) = (entry.id(VolumeKind::ReadWrite), entry.name.to_string());
        let backup = match entry.id(VolumeKind::Backup) {
            VolumeId(0) => self.new_id().await?,
            backup => backup,
        };
        let mut plan = BackupPlan { volume, name, step: Step::Lock, place, backup };
        let job = Job::begin(self, &plan.clone().into()).await?;
        match plan.run(self, &job).await {
            Ok(()) => job.end().await.map(|()| BackedUp { name: plan.name, backup }),
            Err(error) if plan.step == Step::Lock && error.is_refusal() => {
                job.end().await?;
                Err(error)
            }
            Err(error) => Err(self.give_up(plan.into(), job, error).await),
        }
    }

    /// Backs up many volumes; returns the result of each. A failure does not stop the others.
    ///
    /// # Errors
    /// The location database cannot be listed.
    pub async fn backup_all(&self, which: &BackupAll) -> AdminResult<Vec<(String, AdminResult<BackedUp>)>> {
        let filter = EntryFilter {
            server: which.server,
            partition: which.partition.and_then(|p| p.check()),
            locked: false,
        };
        let entries = self.entries(&filter).await?;
        let wanted = entries.iter().filter_map(|e| Some((e, home(e)?))).filter(|(e, home)| {
            let name = e.name.to_string();
            let begins = |with: &[String]| with.iter().any(|p| name.starts_with(p.as_str()));
            which.server.is_none_or(|s| s == home.server)
                && which.partition.is_none_or(|p| p == home.partition)
                && (which.prefixes.is_empty() || begins(&which.prefixes))
                && !begins(&which.except)
                && e.flags.contains(EntryFlags::RW_EXISTS)
        });
        let mut done = Vec::new();
        for (entry, home) in wanted {
            let name = entry.name.to_string();
            let outcome = if which.dry_run {
                Ok(BackedUp { name: name.clone(), backup: entry.id(VolumeKind::Backup) })
            } else {
                self.progress().step(&format!("backing up {name}"));
                self.backup_entry(entry, home).await
            };
            done.push((name, outcome));
        }
        Ok(done)
    }

    /// Creates or updates a clone of a volume beside it, and publishes it. Its name is the volume's with the
    /// kind's suffix. Idempotent; the entry is the caller's responsibility.
    pub(crate) async fn make_clone(
        &self,
        place: ServerPartition,
        volume: VolumeId,
        clone: VolumeId,
        name: &str,
        kind: VolumeKind,
    ) -> AdminResult {
        let there = self.volume_at(place, clone).await?;
        let half_made = there.is_some_and(|t| t.destroy_me != 0);
        if half_made {
            self.delete_volume(place, clone, true).await?;
        }
        let source = self.take_existing(place, volume, Attach::BUSY).await?;
        let cloned = match there {
            Some(_) if !half_made => source.reclone(clone).await,
            _ => source.clone_as(clone, &format!("{name}{}", kind.suffix()), kind).await,
        };
        source.end_after(cloned).await?;
        self.publish(place, clone, Attach::OFFLINE).await
    }
}

impl BackupPlan {
    pub(crate) fn others(&self) -> Vec<VolumeId> {
        vec![self.backup]
    }

    pub(crate) fn word(&self) -> &'static str {
        "backup"
    }

    pub(crate) fn says(&self) -> String {
        format!("making {}{}", self.name, VolumeKind::Backup.suffix())
    }

    async fn run(&mut self, admin: &Admin, job: &Job) -> AdminResult {
        debug_assert!(
            volname::split(&self.name).1.is_none(),
            "a group has the name of its read-write volume"
        );
        admin.lock_entry(self.volume, &self.name, LockOperation::BACKUP).await?;
        self.step = Step::Clone;
        job.step(&Plan::from(self.clone())).await?;
        self.clone_and_enter(admin).await
    }

    async fn clone_and_enter(&self, admin: &Admin) -> AdminResult {
        admin.make_clone(self.place, self.volume, self.backup, &self.name, VolumeKind::Backup).await?;
        let mut entry = admin.existing_entry(self.volume, &self.name).await?;
        entry.flags = entry.flags.with(EntryFlags::BACK_EXISTS);
        if let Some(id) = entry.ids.get_mut(VolumeKind::Backup.index()) {
            *id = self.backup;
        }
        admin.replace_entry(&entry, ReleaseType::ALL).await
    }

    /// Whether there is a backup volume that the entry does not have. An unfinished one is deleted.
    async fn is_made(&self, admin: &Admin) -> AdminResult<bool> {
        let Some(there) = admin.volume_at(self.place, self.backup).await? else { return Ok(false) };
        if there.destroy_me != 0 {
            admin.delete_volume(self.place, self.backup, false).await?;
            return Ok(false);
        }
        let entry = admin.existing_entry(self.volume, &self.name).await?;
        Ok(!entry.flags.contains(EntryFlags::BACK_EXISTS) || !there.in_use)
    }

    pub(crate) async fn resume(self, admin: &Admin, job: Job) -> AdminResult<Outcome> {
        let outcome = match self.step {
            Step::Lock => Outcome::Undone,
            Step::Clone if !job.is_taken_over() && !self.is_made(admin).await? => Outcome::Undone,
            Step::Clone => {
                if job.is_taken_over() {
                    admin.break_transactions(self.place, self.volume).await?;
                    admin.break_transactions(self.place, self.backup).await?;
                }
                self.clone_and_enter(admin).await?;
                Outcome::Completed
            }
        };
        admin.unlock_entry(self.volume, &self.name).await?;
        job.end().await?;
        Ok(outcome)
    }
}
