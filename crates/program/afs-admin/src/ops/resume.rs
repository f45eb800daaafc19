//! Resumption of interrupted operations.

use super::Outcome;
use crate::Admin;
use crate::error::{AdminError, AdminResult, Cause};
use crate::journal::{Job, Record};
use crate::plan::Plan;

/// Result for one interrupted operation.
#[derive(Clone, Debug)]
pub struct Resumed {
    /// The operation, as recorded in the journal.
    pub record: Record,
    /// How it ended, or why it has not.
    pub outcome: AdminResult<Outcome>,
}

impl Admin {
    /// The operations that have not ended, oldest first, with their holders.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn operations(&self) -> AdminResult<Vec<Record>> {
        self.journal().open().await.map_err(|error| AdminError {
            doing: "Could not read what is under way".into(),
            cause: Cause::Journal(Box::new(error)),
            hint: None,
        })
    }

    /// Completes or undoes every operation whose holder is gone; with a name or id, only those on that
    /// volume.
    ///
    /// # Errors
    /// The journal cannot be read. The error of one operation is in its [`Resumed`], and the operation stays
    /// in the journal.
    pub async fn resume_lapsed(&self, volume: Option<&str>) -> AdminResult<Vec<Resumed>> {
        let wanted =
            |r: &Record| volume.is_none_or(|v| r.draft.name == v || r.draft.volume.0.to_string() == *v);
        let mut done = Vec::new();
        for record in self.operations().await?.into_iter().filter(|r| r.lapsed && wanted(r)) {
            let outcome = self.resume(&record).await;
            done.push(Resumed { record, outcome });
        }
        Ok(done)
    }

    /// Takes over one operation and completes or undoes it, from whichever step it reached.
    ///
    /// # Errors
    /// Its holder lives, a server that it needs does not reply, or it was recorded by a newer version; it
    /// stays in the journal then.
    pub async fn resume(&self, record: &Record) -> AdminResult<Outcome> {
        let doing = || format!("Could not resume {} of volume {}", record.draft.word, record.draft.name);
        let taken = self.journal().take_over(record.id, self.holder().clone()).await;
        let (lease, record_now) = taken.map_err(|error| AdminError {
            doing: doing(),
            cause: Cause::Journal(Box::new(error)),
            hint: None,
        })?;
        let plan: Plan = serde_json::from_slice(&record_now.draft.detail).map_err(|e| {
            AdminError::failed(doing(), format!("its record is of another version: {e}"))
                .with_hint("resume it with the version that began it")
        })?;
        let job = Job::resumed(self, lease, &record_now);
        self.progress().step(&format!(
            "resuming {} of {} at step {}",
            record_now.draft.word, record_now.draft.name, record_now.draft.step
        ));
        plan.resume(self, job).await
    }
}
