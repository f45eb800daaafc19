//! `vos restore`: writes a volume from a stream of bytes.

mod enter;
mod full;

use afs_wire::ids::{KindNumber, UnixSeconds, VolumeId, VolumeKind};
use afs_wire::vl::EntryFlags;
use afs_wire::vol::{HeaderStatus, VolumeFlags, VolumeInfo};
use serde::{Deserialize, Serialize};

use super::{DumpSource, Outcome};
use crate::calls::{Attach, Transaction, UNPUBLISHED, cookie};
use crate::error::{AdminError, AdminResult};
use crate::group::check_name;
use crate::journal::Job;
use crate::plan::Plan;
use crate::{Admin, ServerPartition};
use full::FullDump;

/// What to do with an existing volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Overwrite {
    /// Refuse.
    #[default]
    Refuse,
    /// Replace it by the dump, which must be a full one. A server of ours keeps the old state until the new
    /// one is complete; on one of another maker the old volume is deleted first.
    Full,
    /// Apply the dump, which must be an incremental one, to it.
    Incremental,
}

/// Source of a date of the restored volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreDate {
    /// The dump.
    Dump,
    /// The existing volume.
    Keep,
    /// The present.
    New,
}

/// Parameters of a restore.
#[derive(Clone, Debug)]
pub struct RestoreOptions {
    /// Name of the read-write volume.
    pub name: String,
    /// Its site.
    pub place: ServerPartition,
    /// Its id; `None` is that of the entry with that name, or the next free one.
    pub id: Option<VolumeId>,
    /// What to do with an existing volume.
    pub overwrite: Overwrite,
    /// Restore it as a read-only volume.
    pub read_only: bool,
    /// Leave it off line.
    pub offline: bool,
    /// Creation date; `None`: the present after a full overwrite, else the existing volume's.
    pub creation: Option<RestoreDate>,
    /// Date of the last change; `None`: the dump's.
    pub last_update: Option<RestoreDate>,
    /// Leave the volume at its old site if the entry names another.
    pub keep_old: bool,
}

/// Result of a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Its id.
    pub volume: VolumeId,
    /// Length of the dump.
    pub bytes: u64,
}

/// See [`Plan`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RestorePlan {
    #[serde(with = "crate::wire_numbers::volume")]
    pub(crate) volume: VolumeId,
    pub(crate) name: String,
    pub(crate) step: Step,
    place: ServerPartition,
    read_only: bool,
    /// Whether the dump is written into an existing volume.
    onto: bool,
    /// Whether nothing of that volume is kept.
    #[serde(default)]
    full: bool,
}

/// Steps of a restore. Until the entry exists, a new volume is deleted again.
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
    /// An invalid name, an existing volume that may not be overwritten, a dump that is damaged or ends early:
    /// nothing incomplete is left then.
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
        let onto = match (there, options.overwrite) {
            (None, _) | (_, Overwrite::Refuse) => false,
            (Some(_), Overwrite::Incremental) => true,
            (Some(there), Overwrite::Full) => self.is_replaced_at_once(options, &there).await,
        };
        let plan = RestorePlan {
            volume: id,
            name: options.name.clone(),
            step: Step::Write,
            place: options.place,
            read_only: options.read_only,
            onto,
            full: options.overwrite == Overwrite::Full,
        };
        let mut full;
        let source: &mut dyn DumpSource = match options.overwrite {
            Overwrite::Full => {
                let begun = FullDump::begin(source).await;
                full = begun.map_err(|why| AdminError::refused(doing, why))?;
                &mut full
            }
            _ => source,
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

    /// Whether the server of an existing volume replaces its state when the new one is complete.
    async fn is_replaced_at_once(&self, options: &RestoreOptions, there: &VolumeInfo) -> bool {
        let kind = if options.read_only { VolumeKind::ReadOnly } else { VolumeKind::ReadWrite };
        there.kind == KindNumber::from(kind)
            && there.destroy_me == 0
            && self.is_ours(options.place.server).await
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
            // If the old state exists until the end, it is served meanwhile.
            let attach = if self.full { Attach::BUSY } else { Attach::OFFLINE };
            let held = admin.take_existing(self.place, self.volume, attach).await?;
            let status = held.status().await;
            return match status {
                Ok(status) => Ok((held, Some(status))),
                Err(error) => held.end_after(Err(error)).await,
            };
        }
        admin.delete_volume(self.place, self.volume, false).await?;
        // A read-write volume with its own id as parent gets no root directory: the dump brings one.
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
        // Before the step: until then the volume is deleted when its server crashes, and the step says that
        // it is permanent.
        held.set_flags(if options.offline { VolumeFlags::OUT_OF_SERVICE } else { VolumeFlags(0) }).await?;
        self.step = Step::Enter;
        job.step(&Plan::from(self.clone())).await?;
        Ok(bytes)
    }

    pub(crate) async fn resume(self, admin: &Admin, job: Job) -> AdminResult<Outcome> {
        let outcome = match self.step {
            Step::Write if self.onto => {
                // Ours has the old state or the new one; another maker's volume may be half-written, and
                // stays off line.
                admin.break_transactions(self.place, self.volume).await?;
                Outcome::Undone
            }
            Step::Write => {
                admin.delete_volume(self.place, self.volume, true).await?;
                Outcome::Undone
            }
            Step::Enter => {
                // On line or off line as requested, it is already.
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
    let fallback = match options.overwrite {
        Overwrite::Incremental if before.is_some() => RestoreDate::Keep,
        _ => RestoreDate::New,
    };
    let now = later(now, before);
    let pick = |date: RestoreDate, dumped: UnixSeconds, kept: fn(&HeaderStatus) -> UnixSeconds| match date {
        RestoreDate::Dump => dumped,
        RestoreDate::Keep => before.map_or(dumped, kept),
        RestoreDate::New => now,
    };
    let creation = pick(options.creation.unwrap_or(fallback), dump.creation_date, |b| b.creation_date);
    let update = pick(options.last_update.unwrap_or(RestoreDate::Dump), dump.update_date, |b| b.update_date);
    VolumeInfo { creation_date: creation, update_date: update, ..VolumeInfo::unchanged() }
}

/// The present, or the second after the last date of what is replaced: clients know another content by another date.
pub(super) fn later(now: UnixSeconds, before: Option<&HeaderStatus>) -> UnixSeconds {
    let last = before.map_or(UnixSeconds(0), |before| before.creation_date.max(before.update_date));
    UnixSeconds(now.0.max(last.0.saturating_add(1)))
}
