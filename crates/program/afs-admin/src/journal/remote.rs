//! The journal in the cell's own database, beside the location service.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{CallError, Connection, EnvExt, EnvRef, Rx, Security};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::operations::{
    BeginOperation, Detail, EndOperation, HeartbeatOperation, ListOperations, OpenOperation, OperationHolder,
    StepOperation, TakeOverOperation, Text,
};
use afs_wire::rpc::{Request, ServiceId};
use bytes::Bytes;

use super::{Draft, Holder, Journal, JournalError, Lease, OperationId, Pending, Record};
use crate::cell::Cell;
use crate::failures::{self, Failures};

/// The journal in the cell's own database. Cells of other makers have none: see [`CellJournal::is_kept`].
#[derive(Clone)]
pub struct CellJournal {
    env: EnvRef,
    servers: Arc<Vec<Connection>>,
}

/// Rounds over all servers before the journal counts as unreachable.
const ROUNDS: u32 = 4;
/// Most operations that are listed. The journal of a cell has 1,024; others may begin and end meanwhile.
const OPERATIONS_MAX: usize = 4096;
/// Time between two rounds.
const PAUSE: Duration = Duration::from_secs(2);

impl CellJournal {
    /// The journal of a cell, called as an administrator.
    #[must_use]
    pub fn new(env: EnvRef, rx: &Rx, security: &Security, cell: &Cell) -> Self {
        let connect = |peer: &SocketAddr| {
            let connection = rx.connection(*peer, ServiceId::OPERATIONS, security.clone());
            connection.with_options(failures::PATIENCE)
        };
        Self { env, servers: Arc::new(cell.location.iter().map(connect).collect()) }
    }

    /// Whether the cell keeps a journal: its location servers are ours. An error of the network counts as
    /// yes, so that no other journal is started beside it.
    pub async fn is_kept(&self) -> bool {
        match self.call(&ListOperations { after: 0 }).await {
            Ok(_) => true,
            Err(CallError::Abort(code)) => !is_unknown(code),
            Err(_) => true,
        }
    }

    async fn call<R: Request>(&self, request: &R) -> Result<R::Reply, CallError> {
        self.call_with_peer(request).await.map(|(reply, _)| reply)
    }

    /// The reply, and who sent it.
    async fn call_with_peer<R: Request>(&self, request: &R) -> Result<(R::Reply, SocketAddr), CallError> {
        let mut tried = Failures::none_of(self.servers.len());
        for round in 0..ROUNDS {
            if round > 0 {
                self.env.sleep(PAUSE).await;
            }
            for (index, server) in self.servers.iter().enumerate() {
                if !tried.is_worth_asking(index) {
                    continue;
                }
                match server.call(request).await {
                    Err(error) if is_passing(&error) => tried.note(index, error),
                    answered => return answered.map(|reply| (reply, server.peer())),
                }
            }
        }
        Err(tried.last())
    }

    async fn ask<R: Request>(&self, request: R) -> Result<R::Reply, JournalError> {
        self.call(&request).await.map_err(error_of)
    }

    async fn all(&self) -> Result<Vec<Record>, JournalError> {
        let (mut found, mut after) = (Vec::new(), 0);
        loop {
            let page = self.call_with_peer(&ListOperations { after }).await;
            let (page, server) = page.map_err(error_of)?;
            let Some(last) = page.operations.last().map(|o| o.id) else { return Ok(found) };
            found.extend(page.operations.iter().map(record));
            if last <= after || found.len() > OPERATIONS_MAX {
                let why = format!("the list that server {} sends does not end", server.ip());
                return Err(JournalError::Store(why));
            }
            after = last;
        }
    }
}

fn error_of(error: CallError) -> JournalError {
    match error.abort_code() {
        Some(code) if code.0 == Errno::ESTALE.number() || code.0 == Errno::ENOENT.number() => {
            JournalError::Lost
        }
        _ => JournalError::Store(error.to_string()),
    }
}

/// No such service, or no such call: another maker's server.
fn is_unknown(code: AbortCode) -> bool {
    code == AbortCode::RX_INVALID_OPERATION || code == AbortCode::RXGEN_OPCODE
}

/// No quorum, or starting, or unreachable.
fn is_passing(error: &CallError) -> bool {
    match error {
        CallError::Abort(code) => matches!(code.0, 5376 | 5377) || *code == AbortCode::VRESTARTING,
        error => error.is_silence(),
    }
}

fn text(text: &str) -> Text {
    Text::truncated(text.as_bytes())
}

fn wire_holder(holder: &Holder) -> OperationHolder {
    OperationHolder { who: text(&holder.who), host: text(&holder.host), pid: holder.pid }
}

fn detail(bytes: &Bytes) -> Result<Detail, JournalError> {
    Detail::new(bytes.to_vec()).map_err(|e| JournalError::Store(format!("the operation is too long: {e}")))
}

fn record(wire: &OpenOperation) -> Record {
    let holder =
        Holder { who: wire.holder.who.to_text(), host: wire.holder.host.to_text(), pid: wire.holder.pid };
    Record {
        id: OperationId(wire.id),
        draft: Draft {
            word: wire.word.to_text(),
            volume: wire.volume,
            name: wire.name.to_text(),
            holder,
            step: wire.step.to_text(),
            detail: Bytes::copy_from_slice(&wire.detail),
        },
        since: wire.since,
        heard: wire.heard,
        lapsed: wire.lapsed,
    }
}

impl Journal for CellJournal {
    fn begin(&self, draft: Draft) -> Pending<'_, Lease> {
        Box::pin(async move {
            let request = BeginOperation {
                word: text(&draft.word),
                volume: draft.volume,
                name: text(&draft.name),
                holder: wire_holder(&draft.holder),
                step: text(&draft.step),
                detail: detail(&draft.detail)?,
            };
            match self.call(&request).await {
                Ok(reply) => Ok(Lease { id: OperationId(reply.id), holding: reply.holding }),
                Err(CallError::Abort(code)) if code.0 == Errno::EBUSY.number() => {
                    let other = self.all().await?.into_iter().find(|r| r.draft.volume == draft.volume);
                    let other = other.map(|r| (r.draft.holder, r.draft.word)).unwrap_or_default();
                    Err(JournalError::Busy(other.0, other.1))
                }
                Err(error) => Err(JournalError::Store(error.to_string())),
            }
        })
    }

    fn step(&self, lease: Lease, step: String, bytes: Bytes) -> Pending<'_, ()> {
        Box::pin(async move {
            let (id, holding) = (lease.id.0, lease.holding);
            self.ask(StepOperation { id, holding, step: text(&step), detail: detail(&bytes)? }).await
        })
    }

    fn heartbeat(&self, lease: Lease) -> Pending<'_, ()> {
        Box::pin(self.ask(HeartbeatOperation { id: lease.id.0, holding: lease.holding }))
    }

    fn end(&self, lease: Lease) -> Pending<'_, ()> {
        Box::pin(async move {
            match self.ask(EndOperation { id: lease.id.0, holding: lease.holding }).await {
                // A reply was lost: the operation is gone, as requested.
                Err(JournalError::Lost) if !self.all().await?.iter().any(|r| r.id == lease.id) => Ok(()),
                ended => ended,
            }
        })
    }

    fn open(&self) -> Pending<'_, Vec<Record>> {
        Box::pin(self.all())
    }

    fn take_over(&self, id: OperationId, holder: Holder) -> Pending<'_, (Lease, Record)> {
        Box::pin(async move {
            let request = TakeOverOperation { id: id.0, holder: wire_holder(&holder) };
            match self.call(&request).await {
                Ok(reply) => Ok((Lease { id, holding: reply.holding }, record(&reply.operation))),
                Err(CallError::Abort(code)) if code.0 == Errno::EBUSY.number() => {
                    let other = self.all().await?.into_iter().find(|r| r.id == id);
                    let other = other.map(|r| (r.draft.holder, r.draft.word)).unwrap_or_default();
                    Err(JournalError::Busy(other.0, other.1))
                }
                Err(CallError::Abort(code)) if code.0 == Errno::ENOENT.number() => Err(JournalError::Lost),
                Err(error) => Err(JournalError::Store(error.to_string())),
            }
        })
    }
}
