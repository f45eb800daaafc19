//! `vos convertROtoRW`: turns a read-only copy into the read-write volume, after the loss of the old one.

use afs_rpc::CallError;
use afs_wire::error::AbortCode;
use afs_wire::ids::{VolumeId, VolumeKind};
use afs_wire::vl::{EntryFlags, LockOperation, ReleaseType, SiteFlags};
use afs_wire::vol::{ConvertRoToRw, VolumeFlags};
use afs_wire::xdr::BoundedVec;
use serde::{Deserialize, Serialize};

use super::Outcome;
use crate::calls::{Attach, Transaction};
use crate::error::{AdminError, AdminResult};
use crate::group::home;
use crate::journal::Job;
use crate::plan::Plan;
use crate::{Admin, ServerPartition};

/// Which copy to convert.
#[derive(Clone, Debug)]
pub struct ConvertOptions {
    /// Name or id of a volume of the group.
    pub volume: String,
    /// Site of the copy.
    pub place: ServerPartition,
    /// Convert although the entry has a read-write volume elsewhere, which is dropped from the entry.
    pub force: bool,
}

/// See [`Plan`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ConvertPlan {
    #[serde(with = "crate::wire_numbers::volume")]
    pub(crate) volume: VolumeId,
    pub(crate) name: String,
    pub(crate) step: Step,
    place: ServerPartition,
    #[serde(with = "crate::wire_numbers::volume")]
    read_only: VolumeId,
    /// Where the entry has the read-write volume at the beginning.
    #[serde(default)]
    old: Option<ServerPartition>,
}

/// Steps of a conversion. From the second on it is completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Step {
    /// The entry is locked.
    Lock,
    /// The copy is converted at its server, and the entry follows.
    Convert,
}

impl Admin {
    /// Turns a read-only copy into the read-write volume. Returns the id of the read-write volume.
    ///
    /// # Errors
    /// No such copy, a read-write volume in the entry elsewhere (without `force`), or a server that fails.
    pub async fn convert(&self, options: &ConvertOptions) -> AdminResult<VolumeId> {
        let doing = format!("Could not convert volume {}", options.volume);
        let group = self.group(&options.volume).await?;
        Self::check_unlocked(&group.entry)?;
        let place = options.place;
        if !group.read_only_sites().any(|s| ServerPartition::from(s) == place) {
            return Err(AdminError::refused(doing, format!("it has no read-only site on {place}"))
                .with_hint(format!("`andrew vos examine {}` shows where it has some", group.name())));
        }
        if let Some(home) = group.home().filter(|_| !options.force) {
            return Err(AdminError::refused(doing, format!("the VLDB has its read-write volume on {home}"))
                .with_hint(
                    "if that one is lost, give --force; what it had since the last release is lost with it",
                ));
        }
        let (volume, name) = (group.id(), group.name());
        let read_only = group.entry.id(VolumeKind::ReadOnly);
        let mut plan = ConvertPlan { volume, name, step: Step::Lock, place, read_only, old: group.home() };
        let job = Job::begin(self, &plan.clone().into()).await?;
        match plan.run(self, &job).await {
            Ok(()) => job.end().await.map(|()| volume),
            Err(error) if plan.step == Step::Lock && error.is_refusal() => {
                job.end().await?;
                Err(error)
            }
            Err(error) => Err(self.give_up(plan.into(), job, error).await),
        }
    }
}

impl ConvertPlan {
    pub(crate) fn others(&self) -> Vec<VolumeId> {
        vec![self.read_only]
    }

    pub(crate) fn word(&self) -> &'static str {
        "convertROtoRW"
    }

    pub(crate) fn says(&self) -> String {
        format!("making the copy of {} on {} the read-write volume", self.name, self.place)
    }

    async fn run(&mut self, admin: &Admin, job: &Job) -> AdminResult {
        admin.lock_entry(self.volume, &self.name, LockOperation::MOVE).await?;
        self.step = Step::Convert;
        job.step(&Plan::from(self.clone())).await?;
        self.convert(admin).await
    }

    /// Idempotent.
    async fn convert(&self, admin: &Admin) -> AdminResult {
        let old = self.hold_old(admin).await;
        let converted = self.convert_held(admin).await;
        if let Some(old) = old {
            // It marks itself as fenced when it next looks at the entry; until then it is off line, if it is to be.
            let flags = if converted.is_ok() { VolumeFlags::OUT_OF_SERVICE } else { VolumeFlags(0) };
            let set = old.set_flags(flags).await;
            if let Err(error) = old.end_after(set).await {
                tracing::warn!(%error, "the old read-write volume takes itself off line");
            }
        }
        converted
    }

    /// Holds the old read-write volume, if its server replies: what clients change meanwhile waits, and is not lost. A server that
    /// does not reply takes the volume off line when it reaches the location database ([`Fencing`](crate::Fencing)).
    async fn hold_old(&self, admin: &Admin) -> Option<Transaction> {
        let old = self.old.filter(|old| *old != self.place)?;
        admin.clock_ahead(old.server).await.ok()?;
        admin.take_existing(old, self.volume, Attach::BUSY).await.ok()
    }

    async fn convert_held(&self, admin: &Admin) -> AdminResult {
        let done = admin.volume_at(self.place, self.volume).await?.is_some();
        if !done {
            let request = ConvertRoToRw { partition: self.place.partition, volume: self.read_only };
            let converted = admin.at(self.place.server, &request).await;
            converted.map_err(|e| self.refused(e))?;
        }
        let mut entry = admin.existing_entry(self.volume, &self.name).await?;
        if home(&entry) != Some(self.place) {
            let others = entry.sites.iter().filter(|s| {
                !s.flags.contains(SiteFlags::RW_VOLUME) && ServerPartition::from(*s) != self.place
            });
            let sites: Vec<_> =
                std::iter::once(self.place.site(SiteFlags::RW_VOLUME)).chain(others.copied()).collect();
            let copies = sites.iter().any(|s| s.flags.contains(SiteFlags::RO_VOLUME));
            entry.flags = entry.flags.with(EntryFlags::RW_EXISTS).without(EntryFlags::BACK_EXISTS);
            if !copies {
                entry.flags = entry.flags.without(EntryFlags::RO_EXISTS);
            }
            entry.sites = BoundedVec::first_of(sites);
        }
        admin.replace_entry(&entry, ReleaseType::ALL).await?;
        admin.publish(self.place, self.volume, Attach::OFFLINE).await
    }

    fn refused(&self, error: CallError) -> AdminError {
        let other = matches!(error, CallError::Abort(AbortCode::VVOLEXISTS));
        let error =
            AdminError::call(format!("Could not convert {}", self.name), Some(self.place.server), error);
        if other {
            error.with_hint("remove the other copies of the volume on that partition first")
        } else {
            error
        }
    }

    pub(crate) async fn resume(self, admin: &Admin, job: Job) -> AdminResult<Outcome> {
        let there = admin.volume_at(self.place, self.volume).await?.is_some();
        let outcome = if self.step == Step::Convert && there {
            self.convert(admin).await?;
            Outcome::Completed
        } else {
            admin.unlock_entry(self.volume, &self.name).await?;
            Outcome::Undone
        };
        job.end().await?;
        Ok(outcome)
    }
}
