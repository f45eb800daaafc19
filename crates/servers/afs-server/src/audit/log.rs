//! Bounded queue of audit records between the calls and the sink.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use afs_rpc::sync::Notify;
use afs_rpc::{EnvExt, EnvRef, Instant, Stall, UnixTime, future};
use parking_lot::Mutex;

use super::record::{AuditPart, AuditRecord, AuditedCall};
use super::refusals::Refusals;
use super::{AuditOptions, AuditSink};

/// Records per write to the sink.
const BATCH: usize = 512;
/// Time after which a failed sink is tried again.
const RETRY: Duration = Duration::from_secs(1);

pub(super) struct Log {
    env: EnvRef,
    options: AuditOptions,
    queue: Mutex<Queue>,
    /// Notified when the queue has records, when counts become due or are wanted, and when the last handle is dropped.
    filled: Arc<Notify>,
    /// Notified when the sink has taken records.
    emptied: Notify,
}

#[derive(Default)]
struct Queue {
    calls: VecDeque<AuditedCall>,
    /// Records of each part lost after its last call in the queue.
    lost: Lost,
    refusals: Refusals,
    /// Whether the counts of refusals are to be recorded before they are due.
    flushing: bool,
    /// Whether the sink has records that it has not confirmed.
    writing: bool,
}

/// Numbers of lost records, in the order of [`AuditPart::ALL`].
type Lost = [u64; AuditPart::ALL.len()];

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

    pub(super) fn wants(&self, part: AuditPart) -> bool {
        self.options.everything || part != AuditPart::Reads
    }

    pub(super) fn record(&self, call: AuditedCall) {
        let now = self.env.now();
        if self.queue.lock().push(call, self.options.queue.max(2), now) {
            self.filled.notify_waiters();
        }
    }

    pub(super) async fn flush(&self) {
        let has_counts = {
            let mut queue = self.queue.lock();
            queue.flushing = queue.refusals.due().is_some();
            queue.flushing
        };
        if has_counts {
            self.filled.notify_waiters();
        }
        loop {
            let emptied = self.emptied.notified();
            if self.queue.lock().is_quiet() {
                return;
            }
            emptied.await;
        }
    }

    /// The next batch; if there is none, when counts become due.
    fn take(&self) -> Result<Vec<AuditRecord>, Option<Instant>> {
        let (now, time) = (self.env.now(), self.env.wall());
        let mut queue = self.queue.lock();
        let batch = queue.take(now, time);
        queue.writing = !batch.is_empty();
        if batch.is_empty() { Err(queue.refusals.due()) } else { Ok(batch) }
    }

    /// Ends a batch. Records that the sink did not keep count as lost, like those that the queue could not
    /// take.
    fn written(&self, lost: Lost) {
        let mut queue = self.queue.lock();
        queue.writing = false;
        for (part, lost) in queue.lost.iter_mut().zip(lost) {
            *part += lost;
        }
        drop(queue);
        self.emptied.notify_waiters();
    }
}

impl Queue {
    /// Adds a call, or counts it. Returns whether the writer has to be woken.
    fn push(&mut self, call: AuditedCall, bound: usize, now: Instant) -> bool {
        let (part, len) = (call.part(), self.calls.len());
        let room = len < if part == AuditPart::Changes { bound } else { bound / 2 };
        if matches!(part, AuditPart::Refusals | AuditPart::AnonymousRefusals) {
            let had_counts = self.refusals.due().is_some();
            if !self.refusals.is_recorded(&call, now, room) {
                return !had_counts;
            }
        } else if !room || self.lost[part as usize] > 0 {
            // Further records are dropped until the loss is recorded, so that the loss stands where it
            // happened.
            self.lost[part as usize] += 1;
            return false;
        }
        self.calls.push_back(call);
        len == 0 && !self.writing
    }

    /// Takes a batch: calls, then what was lost after them, then the counts of refusals if they are due.
    fn take(&mut self, now: Instant, time: UnixTime) -> Vec<AuditRecord> {
        let count = self.calls.len().min(BATCH);
        let mut batch: Vec<AuditRecord> = self.calls.drain(..count).map(AuditRecord::Call).collect();
        if !self.calls.is_empty() {
            return batch;
        }
        let lost = AuditPart::ALL.into_iter().zip(std::mem::take(&mut self.lost));
        batch
            .extend(lost.filter(|(_, count)| *count > 0).map(|(part, count)| AuditRecord::Lost(part, count)));
        if self.flushing || self.refusals.due().is_some_and(|due| due <= now) {
            self.flushing = false;
            batch.extend(self.refusals.take(time).map(AuditRecord::Counted));
        }
        batch
    }

    fn is_quiet(&self) -> bool {
        self.calls.is_empty() && !self.writing && !self.flushing
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
        match strong.take() {
            Ok(batch) => write(strong, &sink, batch).await,
            Err(None) => {
                drop(strong);
                more.await;
            }
            Err(Some(due)) => {
                let due = strong.env.sleep_until(due);
                drop(strong);
                future::select(more, due).await;
            }
        }
    }
}

/// Has the sink write a batch. After a failure, pauses.
async fn write(log: Arc<Log>, sink: &Arc<dyn AuditSink>, batch: Vec<AuditRecord>) {
    let lost = count(&batch);
    let sink = sink.clone();
    let outcome = log.env.run_stalling(Stall::Brief, move || sink.write(&batch)).await;
    let failed = match outcome {
        Ok(Ok(())) => return log.written(Lost::default()),
        Ok(Err(error)) => error,
        Err(_) => io::Error::other("the writer is gone"),
    };
    let records: u64 = lost.iter().sum();
    tracing::error!(error = %failed, lost = records, "the audit log cannot be written; records are lost");
    log.written(lost);
    let pause = log.env.sleep(RETRY);
    drop(log);
    pause.await;
}

/// The number of calls that a batch has of each part.
fn count(batch: &[AuditRecord]) -> Lost {
    let mut all = Lost::default();
    for record in batch {
        all[record.part() as usize] += match record {
            AuditRecord::Call(_) => 1,
            AuditRecord::Counted(counted) => counted.count,
            AuditRecord::Lost(_, count) => *count,
        };
    }
    all
}
