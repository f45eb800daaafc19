//! Operation in progress, with its lease.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use afs_rpc::EnvExt;
use bytes::Bytes;

use super::{Draft, HEARTBEAT, JournalError, Lease, Record};
use crate::Admin;
use crate::error::{AdminError, AdminResult, Cause};
use crate::plan::Plan;

/// An operation in progress: its lease, which heartbeats extend as long as this exists.
pub(crate) struct Job {
    admin: Admin,
    lease: Lease,
    name: String,
    alive: Arc<AtomicBool>,
    taken_over: bool,
}

impl Job {
    /// Records the start of an operation, with its first step.
    pub(crate) async fn begin(admin: &Admin, plan: &Plan) -> AdminResult<Self> {
        let (volume, name) = plan.subject();
        let draft = Draft {
            word: plan.word().to_owned(),
            volume,
            name: name.to_owned(),
            holder: admin.holder().clone(),
            step: plan.step(),
            detail: encode(plan)?,
        };
        let lease = admin.journal().begin(draft).await;
        let lease = lease.map_err(|error| match error {
            JournalError::Busy(..) => journal(plan, error).with_hint(format!(
                "`andrew vos operations` shows what is under way; what was interrupted is resumed by \
                 `andrew vos resume {name}`"
            )),
            _ => journal(plan, error),
        })?;
        Ok(Self::held(admin, lease, name, false))
    }

    /// Continues an operation that was taken over.
    pub(crate) fn resumed(admin: &Admin, lease: Lease, record: &Record) -> Self {
        Self::held(admin, lease, &record.draft.name, true)
    }

    fn held(admin: &Admin, lease: Lease, name: &str, taken_over: bool) -> Self {
        let alive = Arc::new(AtomicBool::new(true));
        admin.env().spawn(Box::pin(live(admin.clone(), lease, Arc::downgrade(&alive))));
        Self { admin: admin.clone(), lease, name: name.to_owned(), alive, taken_over }
    }

    /// Whether another holder began it: then transactions on its volumes are that holder's leftovers. A tool
    /// that continues its own operation has ended its own transactions, and may not end any other.
    pub(crate) fn is_taken_over(&self) -> bool {
        self.taken_over
    }

    /// Records the plan's next step. Its effect may begin when this returns.
    pub(crate) async fn step(&self, plan: &Plan) -> AdminResult {
        if !self.alive.load(Ordering::Relaxed) {
            return Err(journal(plan, JournalError::Lost));
        }
        self.admin.progress().step(&plan.says());
        let written = self.admin.journal().step(self.lease, plan.step(), encode(plan)?).await;
        written.map_err(|error| journal(plan, error))
    }

    /// Removes the operation, which is completed or undone.
    pub(crate) async fn end(self) -> AdminResult {
        let ended = self.admin.journal().end(self.lease).await;
        ended.map_err(|error| AdminError {
            doing: format!("Could not close the journal of {}", self.name),
            cause: Cause::Journal(Box::new(error)),
            hint: Some("the work itself is done".into()),
        })
    }
}

/// Sends heartbeats, until the holder is done or another has taken the operation over.
async fn live(admin: Admin, lease: Lease, alive: Weak<AtomicBool>) {
    loop {
        admin.env().sleep(HEARTBEAT).await;
        let Some(alive) = alive.upgrade() else { return };
        if admin.journal().heartbeat(lease).await == Err(JournalError::Lost) {
            alive.store(false, Ordering::Relaxed);
            return;
        }
    }
}

fn journal(plan: &Plan, error: JournalError) -> AdminError {
    let doing = format!("Could not {} volume {}", plan.word(), plan.subject().1);
    AdminError { doing, cause: Cause::Journal(Box::new(error)), hint: None }
}

fn encode(plan: &Plan) -> AdminResult<Bytes> {
    let json = serde_json::to_vec(plan).map_err(|e| {
        AdminError::failed(
            format!("Could not write down what to do with {}", plan.subject().1),
            e.to_string(),
        )
    })?;
    Ok(Bytes::from(json))
}
