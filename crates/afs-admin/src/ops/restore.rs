//! `vos restore`: a volume from a stream of bytes.

use afs_wire::ids::{UnixSeconds, VolumeId, VolumeKind};
use afs_wire::vl::{Entry, EntryFlags, LockOperation, NameChars, ReleaseType, SiteFlags};
use afs_wire::vol::{HeaderStatus, VolumeFlags, VolumeInfo};
use afs_wire::xdr::BoundedVec;
use serde::{Deserialize, Serialize};

use super::{DumpSource, EditSites, Outcome};
use crate::calls::{Attach, Transaction, UNPUBLISHED, cookie};
use crate::error::{AdminError, AdminResult};
use crate::group::{check_name, home};
use crate::journal::Job;
use crate::plan::Plan;
use crate::{Admin, Place};

/// What to do with a volume that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Overwrite {
    /// Leave it, and do nothing.
    #[default]
    Refuse,
    /// Delete it; the dump becomes the volume.
    Full,
    /// Apply the dump, which has to be an incremental one, to it.
    Incremental,
}

/// Which date a restored volume gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreDate {
    /// That of the dump.
    Dump,
    /// That of the volume that was there.
    Keep,
    /// The present.
    New,
}

/// What is restored, and where.
#[derive(Clone, Debug)]
pub struct RestoreOptions {
    /// Name of the read-write volume.
    pub name: String,
    /// Where.
    pub place: Place,
    /// Its number; `None` is that of the entry with that name, or the next free one.
    pub id: Option<VolumeId>,
    /// What to do with a volume that is there already.
    pub overwrite: Overwrite,
    /// Restore it as a read-only volume.
    pub read_only: bool,
    /// Leave it off line.
    pub offline: bool,
    /// Date of creation; `None`: the present after a full overwriting, else the one it had.
    pub creation: Option<RestoreDate>,
    /// Date of the last change; `None`: the dump's.
    pub last_update: Option<RestoreDate>,
    /// Leave the volume at its old place when the entry names another.
    pub keep_old: bool,
}

/// What was restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Its number.
    pub volume: VolumeId,
    /// Bytes of the dump.
    pub bytes: u64,
}

/// See [`Plan`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RestorePlan {
    #[serde(with = "crate::kept::volume")]
    pub(crate) volume: VolumeId,
    pub(crate) name: String,
    pub(crate) step: Step,
    place: Place,
    read_only: bool,
    /// A volume was there that the dump is applied to.
    onto: bool,
}

/// Steps of a restore. Until the entry is made, a new volume is removed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Step {
    /// The dump is written into the volume.
    Write,
    /// The volume is entered into the location database.
    Enter,
}

impl Admin {
    /// Restores a volume from `source`.
    ///
    /// # Errors
    /// A name that cannot be, a volume that is there and may not be overwritten, a dump that is damaged or ends early:
    /// nothing half-made stays then.
    pub async fn restore(
        &self,
        options: &RestoreOptions,
        source: &mut dyn DumpSource,
    ) -> AdminResult<Restored> {
        let doing = format!("Could not restore volume {}", options.name);
        check_name(&doing, &options.name)?;
        self.check_place(&doing, options.place).await?;
        let known = self.entry_named(&options.name).await?;
        if let Some(entry) = &known {
            Self::check_unlocked(entry)?;
        }
        let id = match (options.id, &known) {
            (Some(id), _) => id,
            (None, Some(entry)) => entry.ids[usize::from(options.read_only)],
            (None, None) => self.new_id().await?,
        };
        let id = if id.0 == 0 { self.new_id().await? } else { id };
        let there = self.volume_at(options.place, id).await?;
        if there.is_some() && options.overwrite == Overwrite::Refuse {
            return Err(AdminError::refused(doing, format!("volume {id} is on {} already", options.place))
                .with_hint("-overwrite full replaces it, -overwrite incremental changes it"));
        }
        let onto = there.is_some() && options.overwrite == Overwrite::Incremental;
        let plan = RestorePlan {
            volume: id,
            name: options.name.clone(),
            step: Step::Write,
            place: options.place,
            read_only: options.read_only,
            onto,
        };
        let job = Job::begin(self, &plan.clone().into()).await?;
        let mut plan = plan;
        match plan.run(self, &job, options, source).await {
            Ok(bytes) => {
                job.end().await?;
                Ok(Restored { volume: id, bytes })
            }
            Err(error) => Err(self.give_up(plan.into(), job, error).await),
        }
    }
}

impl RestorePlan {
    pub(crate) fn word(&self) -> &'static str {
        "restore"
    }

    pub(crate) fn says(&self) -> String {
        match self.step {
            Step::Write => format!("restoring {} on {}", self.name, self.place),
            Step::Enter => format!("entering {} into the VLDB", self.name),
        }
    }

    fn kind(&self) -> VolumeKind {
        if self.read_only { VolumeKind::ReadOnly } else { VolumeKind::ReadWrite }
    }

    async fn run(
        &mut self,
        admin: &Admin,
        job: &Job,
        options: &RestoreOptions,
        source: &mut dyn DumpSource,
    ) -> AdminResult<u64> {
        let (held, before) = self.open(admin).await?;
        let bytes = self.fill(admin, job, options, source, &held, before).await;
        let bytes = held.end_after(bytes).await?;
        self.enter(admin, options.keep_old).await?;
        Ok(bytes)
    }

    async fn open(&self, admin: &Admin) -> AdminResult<(Transaction, Option<HeaderStatus>)> {
        if self.onto {
            let held = admin.take_existing(self.place, self.volume, Attach::OFFLINE).await?;
            let status = held.status().await;
            return match status {
                Ok(status) => Ok((held, Some(status))),
                Err(error) => held.end_after(Err(error)).await,
            };
        }
        admin.delete_volume(self.place, self.volume, false).await?;
        // A read-write volume with its own number as parent gets no root directory: the dump brings one.
        let held = admin.make(self.place, self.volume, &self.header_name(), self.kind(), self.volume).await?;
        let set = held.set_flags(UNPUBLISHED).await;
        match set {
            Ok(()) => Ok((held, None)),
            Err(error) => held.end_after(Err(error)).await,
        }
    }

    fn header_name(&self) -> String {
        format!("{}{}", self.name, self.kind().suffix())
    }

    async fn fill(
        &mut self,
        admin: &Admin,
        job: &Job,
        options: &RestoreOptions,
        source: &mut dyn DumpSource,
        held: &Transaction,
        before: Option<HeaderStatus>,
    ) -> AdminResult<u64> {
        let name = self.header_name();
        let bytes = admin.write_dump(held, cookie(&name, self.kind(), self.volume), source).await?;
        let status = held.status().await?;
        let (clone, backup) = before.map_or((VolumeId(0), VolumeId(0)), |b| (b.clone_id, b.backup_id));
        held.set_ids(&name, self.kind(), [self.volume, clone, backup]).await?;
        held.set_info(dates(options, &status, before.as_ref(), admin.now())).await?;
        // Before the step: until then the volume goes with its server's death, and the step says that it is there to stay.
        held.set_flags(if options.offline { VolumeFlags::OUT_OF_SERVICE } else { VolumeFlags(0) }).await?;
        self.step = Step::Enter;
        job.step(&Plan::from(self.clone())).await?;
        Ok(bytes)
    }

    /// Makes the entry, or changes the one there is. Can be repeated.
    async fn enter(&self, admin: &Admin, keep_old: bool) -> AdminResult {
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
            s.flags.contains(site) && (!self.read_only || Place::from(s) == self.place)
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

    pub(crate) async fn resume(self, admin: &Admin, job: Job) -> AdminResult<Outcome> {
        let outcome = match self.step {
            Step::Write if self.onto => {
                // Ours kept its state; another maker's volume may be half-written, and stays off line.
                admin.break_transactions(self.place, self.volume).await?;
                Outcome::Undone
            }
            Step::Write => {
                admin.delete_volume(self.place, self.volume, true).await?;
                Outcome::Undone
            }
            Step::Enter => {
                // On line or not, as it shall be, it is already.
                admin.break_transactions(self.place, self.volume).await?;
                if let Some(known) = admin.entry(self.volume).await?
                    && known.flags.intersects(EntryFlags::LOCK_OPERATIONS)
                {
                    admin.unlock_entry(self.volume, &self.name).await?;
                }
                self.enter(admin, true).await?;
                Outcome::Completed
            }
        };
        job.end().await?;
        Ok(outcome)
    }
}

fn dates(
    options: &RestoreOptions,
    dump: &HeaderStatus,
    before: Option<&HeaderStatus>,
    now: UnixSeconds,
) -> VolumeInfo {
    let fallback = if before.is_some() { RestoreDate::Keep } else { RestoreDate::New };
    let pick = |date: RestoreDate, dumped: UnixSeconds, kept: fn(&HeaderStatus) -> UnixSeconds| match date {
        RestoreDate::Dump => dumped,
        RestoreDate::Keep => before.map_or(dumped, kept),
        RestoreDate::New => now,
    };
    let creation = pick(options.creation.unwrap_or(fallback), dump.creation_date, |b| b.creation_date);
    let update = pick(options.last_update.unwrap_or(RestoreDate::Dump), dump.update_date, |b| b.update_date);
    VolumeInfo { creation_date: creation, update_date: update, ..VolumeInfo::unchanged() }
}
