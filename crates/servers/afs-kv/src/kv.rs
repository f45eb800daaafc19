//! The store: its components, and the queue of operations for the writer.

use std::collections::VecDeque;
use std::sync::Arc;

use afs_env::EnvRef;
use afs_env::sync::oneshot;
use parking_lot::Mutex;

use crate::base::Base;
use crate::checkpoint::Progress;
use crate::current_turn::{self, CurrentTurn};
use crate::error::{KvError, OpenError, UpdateError};
use crate::log::{self, Log};
use crate::medium::Medium;
use crate::memtable::Memtable;
use crate::recovery::{self, LogFormat};
use crate::snapshot::{Layers, Published, Snapshot};
use crate::spare::Spare;
use crate::txn::{Abandon, Txn};

/// Configuration of a store.
#[derive(Clone, Debug)]
pub struct Config {
    /// Log bytes that start a checkpoint; also about the memory that uncheckpointed rows take, twice while
    /// a checkpoint runs. Default 16 MiB.
    pub log_bytes: u64,
    /// Memory for pages of the base. Default 64 MiB.
    pub cache_bytes: usize,
    /// Most operations in one batch. Default 1024.
    pub batch_operations: usize,
    /// Changed bytes after which a batch takes no further operation. Default 4 MiB.
    pub batch_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { log_bytes: 16 << 20, cache_bytes: 64 << 20, batch_operations: 1024, batch_bytes: 4 << 20 }
    }
}

/// A change, run exactly once on the writer.
pub type Operation = Box<dyn FnOnce(&mut Txn<'_>) -> Result<(), Abandon> + Send>;

/// Receives the outcome of an operation.
pub type Done = Box<dyn FnOnce(Outcome) + Send>;

/// Outcome of an operation.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The operation is durable and visible, as part of the batch of this number. An operation that changed nothing
    /// has the number of the batch whose state it read.
    Committed(u64),
    /// It returned an error and changed nothing; what it read is durable.
    Abandoned,
    /// Its batch could not be made durable; nothing of it is visible.
    Failed(KvError),
}

/// A store: any number of handles, one writer at a time.
#[derive(Clone)]
pub struct Kv {
    pub(crate) engine: Arc<Engine>,
}

pub(crate) struct Engine {
    pub(crate) published: Arc<Published>,
    pub(crate) queue: Mutex<Queue>,
    /// The log, held by the draining thread: this lock is the writer's turn and nothing else waits for it.
    pub(crate) log: Mutex<Log>,
    /// The base, held by the thread that runs the checkpoint.
    pub(crate) base: Mutex<Base>,
    pub(crate) progress: Mutex<Progress>,
    pub(crate) spare: Arc<Spare>,
    pub(crate) env: EnvRef,
    pub(crate) config: Config,
}

#[derive(Default)]
pub(crate) struct Queue {
    pub(crate) waiting: VecDeque<(Operation, Done)>,
    /// A drain is running or scheduled.
    pub(crate) draining: bool,
}

impl Kv {
    /// Opens a store, creating an empty one on an empty medium, and recovers whatever was durable. Blocks on the
    /// medium.
    ///
    /// `tables` are the tables used from now on; new names may be added at any open. `env` provides the blocking
    /// threads, and the salts of the log, which a client that can have rows stored must not be able to guess.
    pub fn open(
        medium: Arc<dyn Medium>,
        tables: &[&str],
        env: EnvRef,
        config: Config,
    ) -> Result<Self, OpenError> {
        let spare = Arc::new(Spare::open(medium.as_ref(), config.log_bytes)?);
        let base = open_base(medium.as_ref(), &spare, config.cache_bytes)?;
        let tables = base.prepare(tables)?;
        let format = base.log_format()?;
        if format == LogFormat::Two {
            log::remove_format_1(medium.as_ref())?;
        }
        let current = open_current(medium.as_ref(), &base, format)?;
        let replayed = Memtable::default();
        let last = recovery::replay(medium.as_ref(), format, current.held(), base.applied()?, &replayed)?;
        let mut log = Log::open(medium.as_ref(), env.clone(), config.log_bytes, current, spare.clone())?;
        let mut progress = Progress::default();
        let mut layers = Layers { active: Arc::default(), frozen: None, base: Arc::new(base.view()?) };
        if !replayed.is_empty() || format == LogFormat::One {
            layers.frozen = Some(Arc::new(replayed));
            progress.begin(last);
            log.mark_full();
        }
        let recovered = layers.frozen.is_some();
        let published = Published::new(last, layers, tables);
        let engine = Engine {
            published,
            queue: Mutex::default(),
            log: Mutex::new(log),
            base: Mutex::new(base),
            progress: Mutex::new(progress),
            spare,
            env,
            config,
        };
        let kv = Self { engine: Arc::new(engine) };
        if recovered {
            // This upgrades a log of format 1: the same transaction that contains its batches records that it is no
            // longer read. Where this fails, for instance on a full medium, reads continue and the first change tries
            // again.
            let _ = kv.checkpoint_frozen();
        }
        Ok(kv)
    }

    /// A snapshot of everything committed so far.
    pub fn snapshot(&self) -> Snapshot {
        self.engine.published.snapshot()
    }

    /// Whether the medium is full, so that a change which needs more room is to be refused: what room the store keeps for itself is for changes
    /// that free some. Asks the medium only after it was full; call it in an operation.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.engine.spare.is_short()
    }

    /// Ready when a snapshot has another sequence number than this one.
    pub async fn changed(&self, sequence: u64) {
        self.engine.published.changed(sequence).await;
    }

    /// The environment it was opened in.
    pub fn env(&self) -> &EnvRef {
        &self.engine.env
    }

    /// The oldest sequence number that any snapshot holds.
    pub fn oldest_snapshot(&self) -> u64 {
        self.engine.published.floor()
    }

    /// Queues an operation for the next batch, and schedules the commit unless a batch is in progress. `done` runs on
    /// the draining thread and must not block.
    pub fn submit(&self, operation: Operation, done: Done) {
        let idle = {
            let mut queue = self.engine.queue.lock();
            queue.waiting.push_back((operation, done));
            !std::mem::replace(&mut queue.draining, true)
        };
        if idle {
            self.schedule_drain();
        }
    }

    /// Runs `operation` in the next batch; completes when its result is durable.
    pub async fn update<T, E>(
        &self,
        operation: impl FnOnce(&mut Txn<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, UpdateError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let slot = Arc::new(Mutex::new(None));
        let result = slot.clone();
        self.submit(
            Box::new(move |txn| {
                let answer = operation(txn);
                let outcome = if answer.is_ok() { Ok(()) } else { Err(Abandon) };
                *slot.lock() = Some(answer);
                outcome
            }),
            Box::new(move |outcome| _ = sender.send((outcome, result.lock().take()))),
        );
        match receiver.await {
            Ok((Outcome::Failed(error), _)) => Err(UpdateError::Kv(error)),
            Ok((_, Some(answer))) => answer.map_err(UpdateError::Refused),
            _ => Err(UpdateError::Kv(KvError::Closed)),
        }
    }

    pub(crate) fn schedule_drain(&self) {
        let kv = self.clone();
        self.engine.env.blocking(Box::new(move || kv.drain()));
    }
}

/// Finds what the log holds at least. A store that has not recorded that yet is new, or of before.
fn open_current(medium: &dyn Medium, base: &Base, format: LogFormat) -> Result<CurrentTurn, KvError> {
    let applied = base.applied()?;
    let has_log = format == LogFormat::Two && base.has_log()?;
    if has_log {
        if let Some(missing) = log::missing(&medium.list()?).next() {
            return Err((&missing).into());
        }
    } else {
        log::open_blobs(medium, LogFormat::Two)?;
    }
    let mut current = CurrentTurn::open(medium)?;
    match (has_log, current.held()) {
        (true, Some(_)) => {}
        (true, None) => return Err((&current_turn::unreadable()).into()),
        (false, _) => {
            current.write(recovery::found_in_log(medium, format, applied)?)?;
            base.note_log()?;
        }
    }
    Ok(current)
}

/// Opens the base. The log is created after it: where there is no log, an unreadable base is one whose creation was
/// interrupted, with nothing in it yet, and it is created again.
fn open_base(medium: &dyn Medium, spare: &Arc<Spare>, cache_bytes: usize) -> Result<Base, OpenError> {
    let unfinished = !medium.list()?.iter().any(|name| name.starts_with("log."));
    let open = || Base::open(medium.open("index")?, Some(spare.clone()), cache_bytes, unfinished);
    match open() {
        Err(OpenError::Kv(error)) if unfinished && error.is_damage() => {
            medium.remove("index")?;
            open()
        }
        opened => opened,
    }
}
