//! The writer: group commit of all queued operations as one log record.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::checkpoint::Room;
use crate::error::{KvError, MAX_OPERATION_BYTES};
use crate::kv::{Config, Done, Kv, Operation, Outcome};
use crate::log::AppendError;
use crate::txn::{Hook, Overlay, Txn};

/// Combined effect of the operations of one batch.
#[derive(Default)]
struct Batch {
    rows: Overlay,
    bytes: usize,
    hooks: Vec<Hook>,
    answers: Vec<(Done, Outcome)>,
}

impl Batch {
    /// Whether it takes a further operation.
    fn is_below(&self, limits: &Config) -> bool {
        self.answers.len() < limits.batch_operations && self.bytes < limits.batch_bytes
    }
}

/// The writer's turn. When an operation panics, those behind it in the queue are still run.
struct WriterTurn<'k> {
    kv: &'k Kv,
    over: bool,
}

impl Drop for WriterTurn<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.kv.schedule_drain();
        }
    }
}

impl Kv {
    /// Commits the queued operations, batch by batch, until the queue is empty. Blocks on the medium.
    ///
    /// Never runs twice at a time: the task that sets `draining` schedules it, and one that waits for room has
    /// returned before the checkpoint schedules the next.
    pub(crate) fn drain(&self) {
        let mut turn = WriterTurn { kv: self, over: false };
        while self.has_work() {
            match self.make_room() {
                Room::Ready(bytes) => {
                    self.commit(bytes);
                    // Replies must not wait for the next batch. While some of them are sent here, operations for it arrive.
                    self.engine.env.release_woken();
                }
                Room::Later => break,
                Room::Refused(error) => {
                    for (_, done) in self.take_waiting() {
                        done(Outcome::Failed(error.clone()));
                    }
                }
            }
        }
        turn.over = true;
    }

    fn has_work(&self) -> bool {
        let mut queue = self.engine.queue.lock();
        queue.draining = !queue.waiting.is_empty();
        queue.draining
    }

    fn take_waiting(&self) -> VecDeque<(Operation, Done)> {
        std::mem::take(&mut self.engine.queue.lock().waiting)
    }

    fn take_operation(&self) -> Option<(Operation, Done)> {
        self.engine.queue.lock().waiting.pop_front()
    }

    fn commit(&self, bytes: usize) {
        let Batch { rows, hooks, answers, .. } = self.run(bytes);
        let sequence = self.engine.published.visible() + 1;
        let result = match rows.is_empty() {
            true => Ok(()),
            false => self.make_durable(sequence, rows, hooks),
        };
        for (done, outcome) in answers {
            done(match (&result, outcome) {
                (Err(error), Outcome::Committed(_) | Outcome::Abandoned) => Outcome::Failed(error.clone()),
                (_, outcome) => outcome,
            });
        }
    }

    /// Runs operations until none waits or the batch is large enough. Those that arrive meanwhile share its flush.
    fn run(&self, bytes: usize) -> Batch {
        let committed = self.snapshot();
        let mut batch = Batch::default();
        while batch.is_below(&self.engine.config) && batch.bytes < bytes {
            let Some((operation, done)) = self.take_operation() else { break };
            let mut txn = Txn::new(&committed, &batch.rows);
            let answer = operation(&mut txn);
            let sequence = txn.sequence();
            let (rows, bytes, hooks) = txn.into_changes();
            let outcome = match answer {
                Err(_) => Outcome::Abandoned,
                Ok(()) if bytes > MAX_OPERATION_BYTES => Outcome::Failed(KvError::TooLarge(bytes)),
                Ok(()) => {
                    batch.rows.extend(rows);
                    batch.bytes += bytes;
                    batch.hooks.extend(hooks);
                    Outcome::Committed(sequence)
                }
            };
            batch.answers.push((done, outcome));
        }
        batch
    }

    /// Log first; then the hooks; then the batch becomes visible.
    fn make_durable(&self, sequence: u64, rows: Overlay, hooks: Vec<Hook>) -> Result<(), KvError> {
        // Held until the batch is visible, so that a checkpoint freezes either all of it or nothing.
        let mut log = self.engine.log.lock();
        match log.append(sequence, &rows) {
            Ok(()) => {}
            Err(AppendError::Refused(error)) => return Err(error),
            Err(AppendError::Torn(error)) => {
                run_hooks(hooks, Hook::unknown).goes_on();
                return Err(error);
            }
            Err(AppendError::Unknown(error)) => {
                tracing::error!(%error, "the log cannot be synced; no further change is accepted");
                self.engine.progress.lock().wound();
                run_hooks(hooks, Hook::unknown).goes_on();
                return Err(error.into());
            }
        }
        let panicked = run_hooks(hooks, |hook| hook.durable(sequence));
        let published = &self.engine.published;
        published.layers().active.insert(rows, sequence, published.floor());
        published.show(sequence);
        // The batch is durable and has its number even if a hook panicked.
        panicked.goes_on();
        Ok(())
    }
}

/// The first panic of some hooks.
#[must_use]
struct Panicked(Option<Box<dyn Any + Send>>);

impl Panicked {
    /// Continues the panic, if there was one.
    fn goes_on(self) {
        if let Some(panic) = self.0 {
            resume_unwind(panic);
        }
    }
}

/// Runs every hook, the others too when one panics.
fn run_hooks(hooks: Vec<Hook>, run: impl Fn(Hook)) -> Panicked {
    let run = |hook: Hook| catch_unwind(AssertUnwindSafe(|| run(hook))).err();
    Panicked(hooks.into_iter().map(run).fold(None, Option::or))
}
