//! `vos remove`: deletes a volume and its record in the location database.

use afs_wire::ids::{VolumeId, VolumeKind};
use afs_wire::vl::{Entry, EntryFlags, LockOperation, ReleaseType, SiteFlags};
use afs_wire::xdr::BoundedVec;
use serde::{Deserialize, Serialize};

use super::Outcome;
use crate::error::{AdminError, AdminResult};
use crate::group::home;
use crate::journal::Job;
use crate::lost_snapshots::LostSnapshots;
use crate::plan::Plan;
use crate::{Admin, Group, ServerPartition};

/// Parameters of a removal.
#[derive(Clone, Debug, Default)]
pub struct RemoveOptions {
    /// Name or id; `.readonly` and `.backup` remove only that copy.
    pub volume: String,
    /// Its expected site; needed if a read-only volume has several sites.
    pub place: Option<ServerPartition>,
    /// Also delete its snapshots. Without this a volume with snapshots is not removed, unless its server made
    /// them.
    pub snapshots: bool,
}

/// Result of a removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Its id.
    pub volume: VolumeId,
    /// Its site.
    pub place: ServerPartition,
    /// Whether read-only copies remain.
    pub copies_remain: bool,
}

/// See [`Plan`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RemovePlan {
    #[serde(with = "crate::wire_numbers::volume")]
    pub(crate) volume: VolumeId,
    pub(crate) name: String,
    pub(crate) step: Step,
    place: ServerPartition,
    kind: Kind,
    /// The volume to delete.
    #[serde(with = "crate::wire_numbers::volume")]
    victim: VolumeId,
}

/// [`VolumeKind`] as the journal keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    ReadWrite,
    ReadOnly,
    Backup,
}

/// Steps of a removal. From the second on it is completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Step {
    /// The entry is locked.
    Lock,
    /// The volume is deleted at its server, and then its site or its entry.
    Delete,
}

impl Admin {
    /// Removes a volume: the read-write one with its backup volume, or one copy.
    ///
    /// # Errors
    /// No such volume, another site than the one given, several sites and none given, snapshots that would be
    /// lost, or a server that fails.
    pub async fn remove(&self, options: RemoveOptions) -> AdminResult<Removed> {
        let doing = format!("Could not remove volume {}", options.volume);
        let Some(group) = self.find_group(&options.volume).await? else {
            return self.remove_unlisted(&doing, &options).await;
        };
        Self::check_unlocked(&group.entry)?;
        let place = place_of(&doing, &group, options.place)?;
        let kind = match group.kind {
            VolumeKind::ReadWrite => Kind::ReadWrite,
            VolumeKind::ReadOnly => Kind::ReadOnly,
            VolumeKind::Backup => Kind::Backup,
        };
        if kind == Kind::Backup && !group.has(EntryFlags::BACK_EXISTS) {
            self.check_there(&doing, place, group.wanted()).await?;
        }
        if kind == Kind::ReadWrite {
            self.remove_snapshots_first(&doing, &group, place, options.snapshots).await?;
        }
        let (volume, name, victim) = (any_id(&group.entry), group.name(), group.wanted());
        let mut plan = RemovePlan { volume, name, step: Step::Lock, place, kind, victim };
        let job = Job::begin(self, &plan.clone().into()).await?;
        match plan.run(self, &job).await {
            Ok(copies_remain) => {
                job.end().await?;
                Ok(Removed { volume: victim, place, copies_remain })
            }
            // The lock of another operation must not be released.
            Err(error) if plan.step == Step::Lock && error.is_refusal() => {
                job.end().await?;
                Err(error)
            }
            Err(error) => Err(self.give_up(plan.into(), job, error).await),
        }
    }

    /// Deletes a volume that is not in the location database, by id and site.
    async fn remove_unlisted(&self, doing: &str, options: &RemoveOptions) -> AdminResult<Removed> {
        let (Ok(id), Some(place)) = (options.volume.parse(), options.place) else {
            return Err(AdminError::refused(doing, "it is not in the VLDB").with_hint(
                "`andrew vos listvldb` shows what is; give server, partition and number of one that is not",
            ));
        };
        let volume = VolumeId(id);
        self.check_there(doing, place, volume).await?;
        self.delete_volume(place, volume, false).await?;
        Ok(Removed { volume, place, copies_remain: false })
    }

    async fn check_there(&self, doing: &str, place: ServerPartition, volume: VolumeId) -> AdminResult {
        match self.volume_at(place, volume).await? {
            Some(_) => Ok(()),
            None => Err(AdminError::refused(doing, format!("it is neither in the VLDB nor on {place}"))),
        }
    }

    async fn remove_snapshots_first(
        &self,
        doing: &str,
        group: &Group,
        place: ServerPartition,
        agreed: bool,
    ) -> AdminResult {
        let snapshots = self.snapshots_at(place, group.id()).await?;
        let losing = LostSnapshots::of(&snapshots);
        if let Some(which) = losing.described() {
            if losing.needs_consent() && !agreed {
                return Err(AdminError::refused(doing, format!("it has snapshots: {which}"))
                    .with_hint("--snapshots removes them too"));
            }
            self.progress().warn(&format!("the snapshots of {} are removed with it: {which}", group.name()));
        }
        for snapshot in snapshots {
            self.delete_snapshot(place, &snapshot).await?;
        }
        Ok(())
    }
}

fn any_id(entry: &Entry) -> VolumeId {
    entry.ids.iter().copied().find(|id| id.0 != 0).unwrap_or_default()
}

/// The site that is meant.
fn place_of(doing: &str, group: &Group, named: Option<ServerPartition>) -> AdminResult<ServerPartition> {
    let places: Vec<ServerPartition> = match group.kind {
        VolumeKind::ReadOnly => group.read_only_sites().map(ServerPartition::from).collect(),
        VolumeKind::ReadWrite | VolumeKind::Backup => group.home().into_iter().collect(),
    };
    let wrong = |why: String| {
        Err(AdminError::refused(doing, why)
            .with_hint(format!("`andrew vos examine {}` shows where it is", group.name())))
    };
    match (named, places.as_slice()) {
        (Some(named), _) if places.contains(&named) => Ok(named),
        (Some(named), _) => Err(AdminError::refused(doing, format!("the VLDB does not have it on {named}"))
            .with_hint(format!(
                "`andrew vos examine {}` shows where it is, and `andrew vos zap` deletes what only a server knows of",
                group.name()
            ))),
        (None, [one]) => Ok(*one),
        (None, []) => wrong("the VLDB has no place of it".into()),
        (None, _) => wrong("it is in several places; give server and partition".into()),
    }
}

impl RemovePlan {
    pub(crate) fn others(&self) -> Vec<VolumeId> {
        vec![self.victim]
    }

    pub(crate) fn word(&self) -> &'static str {
        "remove"
    }

    pub(crate) fn says(&self) -> String {
        format!("deleting volume {} of {} on {}", self.victim, self.name, self.place)
    }

    async fn run(&mut self, admin: &Admin, job: &Job) -> AdminResult<bool> {
        admin.lock_entry(self.volume, &self.name, LockOperation::DELETE).await?;
        self.step = Step::Delete;
        job.step(&Plan::from(self.clone())).await?;
        self.delete(admin, false).await
    }

    /// Idempotent.
    async fn delete(&self, admin: &Admin, breaking: bool) -> AdminResult<bool> {
        let Some(entry) = admin.entry(self.volume).await? else {
            admin.delete_volume(self.place, self.victim, breaking).await?;
            return Ok(false);
        };
        if self.kind == Kind::ReadWrite {
            let backup = entry.id(VolumeKind::Backup);
            if backup.0 != 0 {
                admin.delete_volume(self.place, backup, breaking).await?;
            }
        }
        admin.delete_volume(self.place, self.victim, breaking).await?;
        let entry = self.without(entry);
        let remain = entry.sites.iter().any(|s| s.flags.contains(SiteFlags::RO_VOLUME));
        if entry.sites.is_empty() || !entry.flags.intersects(EXISTS) {
            admin.delete_entry(&entry).await?;
        } else {
            admin.replace_entry(&entry, ReleaseType::ALL).await?;
        }
        Ok(remain)
    }

    /// Whether nothing was deleted.
    async fn is_untouched(&self, admin: &Admin) -> AdminResult<bool> {
        let Some(entry) = admin.entry(self.volume).await? else { return Ok(false) };
        let with_backup = self.kind == Kind::ReadWrite && entry.flags.contains(EntryFlags::BACK_EXISTS);
        let backup = with_backup.then(|| entry.id(VolumeKind::Backup));
        for volume in backup.into_iter().chain([self.victim]) {
            if admin.volume_at(self.place, volume).await?.is_none_or(|v| v.destroy_me != 0) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The entry after the volume is deleted.
    fn without(&self, mut entry: Entry) -> Entry {
        let gone = match self.kind {
            Kind::Backup => {
                entry.flags = entry.flags.without(EntryFlags::BACK_EXISTS);
                return entry;
            }
            Kind::ReadWrite => {
                entry.flags = entry.flags.without(EntryFlags::RW_EXISTS.with(EntryFlags::BACK_EXISTS));
                SiteFlags::RW_VOLUME
            }
            Kind::ReadOnly => SiteFlags::RO_VOLUME,
        };
        let stays =
            |s: &&afs_wire::vl::Site| !(s.flags.contains(gone) && ServerPartition::from(*s) == self.place);
        let sites: Vec<_> = entry.sites.iter().filter(stays).copied().collect();
        if !sites.iter().any(|s| s.flags.contains(SiteFlags::RO_VOLUME)) {
            entry.flags = entry.flags.without(EntryFlags::RO_EXISTS);
        }
        entry.sites = BoundedVec::first_of(sites);
        entry
    }

    pub(crate) async fn resume(self, admin: &Admin, job: Job) -> AdminResult<Outcome> {
        match self.step {
            Step::Lock => {
                admin.unlock_entry(self.volume, &self.name).await?;
                job.end().await?;
                Ok(Outcome::Undone)
            }
            Step::Delete if !job.is_taken_over() && self.is_untouched(admin).await? => {
                admin.unlock_entry(self.volume, &self.name).await?;
                job.end().await?;
                Ok(Outcome::Undone)
            }
            Step::Delete => {
                // The lock was released with the entry's last change, if that was reached; the work is then
                // repeated without one.
                let gone = admin.volume_at(self.place, self.victim).await?.is_none();
                let site_gone = match admin.entry(self.volume).await? {
                    None => true,
                    Some(entry) => self.kind == Kind::ReadWrite && home(&entry) != Some(self.place),
                };
                if !(gone && site_gone) {
                    self.delete(admin, job.is_taken_over()).await?;
                }
                job.end().await?;
                Ok(Outcome::Completed)
            }
        }
    }
}

const EXISTS: EntryFlags = EntryFlags::RW_EXISTS.with(EntryFlags::RO_EXISTS);
