//! Bounded queue of audit records between the calls and the sink.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use afs_rpc::sync::Notify;
use afs_rpc::{EnvExt, EnvRef, Stall, UnixTime};
use afs_wire::error::AbortCode;
use parking_lot::Mutex;

use super::record::{AuditRecord, AuditedCall, CallKind};
use super::{AuditOptions, AuditSink, is_refusal};

/// Records per write to the sink.
const BATCH: usize = 512;
/// Time after which a failed sink is tried again.
const RETRY: Duration = Duration::from_secs(1);

pub(super) struct Log {
    env: EnvRef,
    options: AuditOptions,
    queue: Mutex<Queue>,
    /// Notified when the queue has records, or when the last handle is dropped.
    filled: Arc<Notify>,
    /// Notified when the sink has taken records.
    emptied: Notify,
}

#[derive(Default)]
struct Queue {
    calls: VecDeque<AuditedCall>,
    /// Records lost after the last call in the queue.
    lost: u64,
    /// Whether the sink has records that it has not confirmed.
    writing: bool,
}

impl Log {
    pub(super) fn start(env: EnvRef, sink: Arc<dyn AuditSink>, options: AuditOptions) -> Arc<Self> {
        let log = Arc::new(Log {
            env: env.clone(),
            options,
            queue: Mutex::default(),
            filled: Arc::default(),
            emptied: Notify::new(),
        });
        let (weak, filled) = (Arc::downgrade(&log), log.filled.clone());
        // The thread that commits a change also writes its record.
        env.start(Box::pin(drain(weak, filled, sink)), Stall::None);
        log
    }

    pub(super) fn now(&self) -> UnixTime {
        self.env.wall()
    }

    pub(super) fn wants(&self, kind: CallKind, code: AbortCode) -> bool {
        self.options.everything || kind == CallKind::Change || is_refusal(code)
    }

    pub(super) fn push(&self, call: AuditedCall) {
        let was_idle = {
            let mut queue = self.queue.lock();
            // Further records are dropped until the loss is recorded, so that the loss stands where it
            // happened.
            if queue.lost > 0 || queue.calls.len() >= self.options.queue.max(1) {
                queue.lost += 1;
                return;
            }
            queue.calls.push_back(call);
            queue.calls.len() == 1 && !queue.writing
        };
        if was_idle {
            self.filled.notify_waiters();
        }
    }

    pub(super) async fn flush(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.queue.lock().is_quiet() {
                return;
            }
            emptied.await;
        }
    }

    fn take(&self) -> Vec<AuditRecord> {
        let mut queue = self.queue.lock();
        let count = queue.calls.len().min(BATCH);
        let mut batch: Vec<AuditRecord> = queue.calls.drain(..count).map(AuditRecord::Call).collect();
        if queue.calls.is_empty() && queue.lost > 0 {
            batch.push(AuditRecord::Lost(std::mem::take(&mut queue.lost)));
        }
        queue.writing = !batch.is_empty();
        batch
    }

    /// Ends a batch. Records that the sink did not keep count as lost, like those that the queue could not
    /// take.
    fn written(&self, lost: u64) {
        let mut queue = self.queue.lock();
        queue.writing = false;
        queue.lost += lost;
        drop(queue);
        self.emptied.notify_waiters();
    }
}

impl Queue {
    fn is_quiet(&self) -> bool {
        self.calls.is_empty() && !self.writing
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.filled.notify_waiters();
    }
}

async fn drain(log: Weak<Log>, filled: Arc<Notify>, sink: Arc<dyn AuditSink>) {
    loop {
        let more = filled.notified();
        let Some(strong) = log.upgrade() else { return };
        let batch = strong.take();
        if batch.is_empty() {
            drop(strong);
            more.await;
            continue;
        }
        let lost = count(&batch);
        let sink = sink.clone();
        let outcome = strong.env.run_stalling(Stall::Brief, move || sink.write(&batch)).await;
        let failed = match outcome {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error),
            Err(_) => Some(io::Error::other("the writer is gone")),
        };
        let Some(error) = failed else {
            strong.written(0);
            continue;
        };
        tracing::error!(%error, lost, "the audit log cannot be written; records are lost");
        strong.written(lost);
        let pause = strong.env.sleep(RETRY);
        drop(strong);
        pause.await;
    }
}

fn count(batch: &[AuditRecord]) -> u64 {
    let one = |record: &AuditRecord| match record {
        AuditRecord::Call(_) => 1,
        AuditRecord::Lost(count) => *count,
    };
    batch.iter().map(one).sum()
}
