//! `vos swap`: exchanges the names of two volume groups, at once for who looks a name up.

use afs_rpc::CallError;
use afs_wire::error::AbortCode;
use afs_wire::ids::VolumeId;
use afs_wire::vl::{ExchangeNames, LockOperation};
use serde::{Deserialize, Serialize};

use super::Outcome;
use crate::Admin;
use crate::error::{AdminError, AdminResult};
use crate::journal::Job;
use crate::plan::Plan;

/// See [`Plan`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SwapPlan {
    #[serde(with = "crate::wire_numbers::volume")]
    pub(crate) volume: VolumeId,
    /// Its name before.
    pub(crate) name: String,
    pub(crate) step: Step,
    #[serde(with = "crate::wire_numbers::volume")]
    other: VolumeId,
    /// The other one's name before.
    other_name: String,
}

/// Steps of an exchange. From the second on it is completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Step {
    /// Both entries are locked.
    Lock,
    /// The entries exchange their names in one change, then every volume gets the name of its entry.
    Name,
}

impl Admin {
    /// Exchanges the names of two volume groups: what is mounted by one of the names is the other volume from then on.
    ///
    /// # Errors
    /// No such volume, one and the same, location servers that do not know the exchange, or a server that fails.
    pub async fn swap(&self, one: &str, other: &str) -> AdminResult {
        let doing = format!("Could not exchange the names of {one} and {other}");
        let (one, other) = (self.group(one).await?, self.group(other).await?);
        if one.id() == other.id() {
            return Err(AdminError::refused(doing, "both are the same volume"));
        }
        Self::check_unlocked(&one.entry)?;
        Self::check_unlocked(&other.entry)?;
        let (other, other_name) = (other.id(), other.name());
        let mut plan = SwapPlan { volume: one.id(), name: one.name(), step: Step::Lock, other, other_name };
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

impl SwapPlan {
    pub(crate) fn others(&self) -> Vec<VolumeId> {
        vec![self.other]
    }

    pub(crate) fn word(&self) -> &'static str {
        "swap"
    }

    pub(crate) fn says(&self) -> String {
        format!("exchanging the names of {} and {}", self.name, self.other_name)
    }

    async fn run(&mut self, admin: &Admin, job: &Job) -> AdminResult {
        admin.lock_entry(self.volume, &self.name, LockOperation::DELETE).await?;
        let locked = admin.lock_entry(self.other, &self.other_name, LockOperation::DELETE).await;
        if let Err(error) = locked {
            // Another operation holds the lock of the second entry: this one releases its lock of the first.
            admin.unlock_entry(self.volume, &self.name).await?;
            return Err(error);
        }
        self.step = Step::Name;
        job.step(&Plan::from(self.clone())).await?;
        self.exchange(admin, false).await
    }

    async fn exchange(&self, admin: &Admin, breaking: bool) -> AdminResult {
        let entry = admin.existing_entry(self.volume, &self.name).await?;
        if entry.name.to_string() == self.name {
            let request = ExchangeNames { one: self.volume, other: self.other };
            admin.locate(&request).await.map_err(|error| self.not_exchanged(error))?;
        }
        for (volume, name) in [(self.volume, &self.other_name), (self.other, &self.name)] {
            let entry = admin.existing_entry(volume, name).await?;
            admin.name_volumes(&entry, breaking).await?;
        }
        admin.unlock_entry(self.volume, &self.other_name).await?;
        admin.unlock_entry(self.other, &self.name).await
    }

    fn not_exchanged(&self, error: CallError) -> AdminError {
        let doing = format!("Could not exchange the names of {} and {}", self.name, self.other_name);
        match error {
            CallError::Abort(AbortCode::RXGEN_OPCODE) => {
                AdminError::refused(doing, "the location servers of this cell do not know the exchange")
                    .with_hint("rename one to a third name, and the other after it: `andrew vos rename`")
            }
            error => AdminError::call(doing, None, error),
        }
    }

    pub(crate) async fn resume(self, admin: &Admin, job: Job) -> AdminResult<Outcome> {
        let outcome = match self.step {
            Step::Lock => self.unlock(admin).await?,
            Step::Name => {
                self.exchange(admin, job.is_taken_over()).await?;
                Outcome::Completed
            }
        };
        job.end().await?;
        Ok(outcome)
    }

    /// Ends the locks. That of the second entry may be another operation's, which the journal has then.
    async fn unlock(&self, admin: &Admin) -> AdminResult<Outcome> {
        admin.unlock_entry(self.volume, &self.name).await?;
        let open = admin.operations().await?;
        if !open.iter().any(|record| record.draft.volume != self.volume && record.works_on(self.other)) {
            admin.unlock_entry(self.other, &self.other_name).await?;
        }
        Ok(Outcome::Undone)
    }
}
