//! The journal of administrative operations as a service, beside the location service
//! (`docs/protocol/operations-journal.md`). For administrators only: its content decides what happens to
//! volumes.

use std::sync::Arc;

use afs_db::journal::{Draft, Holder, OperationError, OperationsDb};
use afs_rpc::{EnvRef, Service, Table};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::UnixSeconds;
use afs_wire::operations::{
    BeginOperation, BeginOperationReply, EndOperation, GetSnapshotSchedule, GetSnapshotScheduleReply,
    HeartbeatOperation, ListOperations, ListOperationsReply, Operations, PAGE_MAX, SCHEDULED_MAX,
    SetSnapshotSchedule, StepOperation, TakeOverOperation, TakeOverOperationReply,
};
use afs_wire::rpc::ServiceId;

use crate::audit::{AuditObject, described};
use crate::guard::{Guard, Guarded, administrators};

/// The journal service over a database.
pub struct JournalServer {
    env: EnvRef,
    db: Arc<dyn OperationsDb>,
    guard: Guard,
}

impl JournalServer {
    /// A service over `db`, for port 7003 ([`afs_rpc::Rx::listen`]), beside the location service.
    pub fn service(env: EnvRef, db: Arc<dyn OperationsDb>, guard: Guard) -> Arc<dyn Service> {
        let server = Arc::new(JournalServer { env, db, guard });
        let table = Table::new(ServiceId::OPERATIONS, server);
        let table =
            administrators(table, |s: Arc<Self>, call: BeginOperation| async move { s.begin(call).await });
        let table =
            administrators(table, |s: Arc<Self>, call: StepOperation| async move { s.step(call).await });
        let table = administrators(table, |s: Arc<Self>, call: HeartbeatOperation| async move {
            s.db.heartbeat(call.id, call.holding, s.now()).await.map_err(code)
        });
        let table = administrators(table, |s: Arc<Self>, call: EndOperation| async move {
            s.db.end(call.id, call.holding).await.map_err(code)
        });
        let table =
            administrators(
                table,
                |s: Arc<Self>, call: ListOperations| async move { s.list(call.after).await },
            );
        let table = administrators(table, |s: Arc<Self>, _: GetSnapshotSchedule| async move {
            let found = s.db.schedule().await.map_err(code)?;
            let schedule = found.ok_or_else(|| AbortCode(Errno::ENOENT.number()))?;
            Ok(GetSnapshotScheduleReply { schedule })
        });
        let table = administrators(table, |s: Arc<Self>, call: SetSnapshotSchedule| async move {
            if call.schedule.daily.max(call.schedule.weekly) > SCHEDULED_MAX {
                return Err(AbortCode(Errno::EINVAL.number()));
            }
            s.db.set_schedule(call.schedule).await.map_err(code)
        });
        Arc::new(administrators(table, |s: Arc<Self>, call: TakeOverOperation| async move {
            s.take_over(call).await
        }))
    }

    fn now(&self) -> UnixSeconds {
        UnixSeconds(self.env.wall().secs_u32())
    }

    async fn begin(&self, call: BeginOperation) -> Result<BeginOperationReply, AbortCode> {
        let draft = Draft {
            word: call.word.to_text(),
            volume: call.volume,
            name: call.name.to_text(),
            holder: Holder::from(call.holder),
            step: call.step.to_text(),
            detail: call.detail.into_vec(),
        };
        let kept = self.db.begin(draft, self.now()).await.map_err(code)?;
        Ok(BeginOperationReply { id: kept.id, holding: kept.holding })
    }

    async fn step(&self, call: StepOperation) -> Result<(), AbortCode> {
        let (step, detail) = (call.step.to_text(), call.detail.into_vec());
        self.db.step(call.id, call.holding, step, detail, self.now()).await.map_err(code)
    }

    async fn list(&self, after: u64) -> Result<ListOperationsReply, AbortCode> {
        let now = self.now();
        let kept = self.db.list(after, PAGE_MAX).await.map_err(code)?;
        Ok(ListOperationsReply { operations: Operations::first_of(kept.iter().map(|k| k.to_wire(now))) })
    }

    async fn take_over(&self, call: TakeOverOperation) -> Result<TakeOverOperationReply, AbortCode> {
        let now = self.now();
        let kept = self.db.take_over(call.id, Holder::from(call.holder), now).await.map_err(code)?;
        Ok(TakeOverOperationReply { holding: kept.holding, operation: kept.to_wire(now) })
    }
}

fn code(error: OperationError) -> AbortCode {
    let errno = match error {
        OperationError::Busy => Errno::EBUSY,
        OperationError::Gone => Errno::ENOENT,
        OperationError::Lost => Errno::ESTALE,
        OperationError::Full => Errno::ENOSPC,
        OperationError::TooLong => Errno::E2BIG,
        OperationError::NoQuorum => return AbortCode::UNOQUORUM,
        error => {
            tracing::error!(%error, "the journal of operations cannot be used");
            Errno::EIO
        }
    };
    AbortCode(errno.number())
}

impl Guarded for JournalServer {
    const SERVICE: ServiceId = ServiceId::OPERATIONS;
    const REFUSAL: AbortCode = AbortCode::VL_PERM;

    fn guard(&self) -> &Guard {
        &self.guard
    }
}

described! {
    Change: BeginOperation |call| call.volume;
    Change: StepOperation |_| AuditObject::Nothing;
    Read: HeartbeatOperation |_| AuditObject::Nothing;
    Change: EndOperation |_| AuditObject::Nothing;
    Read: ListOperations |_| AuditObject::Nothing;
    Change: TakeOverOperation |_| AuditObject::Nothing;
    Read: GetSnapshotSchedule |_| AuditObject::Nothing;
    Change: SetSnapshotSchedule |_| AuditObject::Nothing;
}
