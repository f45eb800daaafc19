//! The engine: its parts, and how operations reach the writer.

use std::collections::VecDeque;
use std::sync::Arc;

use afs_env::EnvRef;
use afs_env::sync::oneshot;
use parking_lot::Mutex;

use crate::base::Base;
use crate::checkpoint::Progress;
use crate::error::{KvError, OpenError, UpdateError};
use crate::log::{self, Log};
use crate::medium::Medium;
use crate::memtable::Memtable;
use crate::recovery::{self, LogFormat};
use crate::snapshot::{Layers, Published, Snapshot};
use crate::txn::{Abandon, Txn};

/// Bounds of an engine.
#[derive(Clone, Debug)]
pub struct Config {
    /// Log bytes that start a checkpoint; also about the memory that uncheckpointed rows take, twice while
    /// a checkpoint runs. Default 16 MiB.
    pub log_bytes: u64,
    /// Memory for pages of the base. Default 64 MiB.
    pub cache_bytes: usize,
    /// The most operations of one batch. Default 1024.
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

/// Told what became of an operation.
pub type Done = Box<dyn FnOnce(Outcome) + Send>;

/// What became of an operation.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It is durable and visible, as part of the batch of this number. An operation that changed nothing
    /// has the number of the batch whose state it saw.
    Committed(u64),
    /// It answered an error and left nothing behind; what it saw is durable.
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
    /// The log, held by whoever is draining: this lock is the writer's turn and nothing else waits for it.
    pub(crate) log: Mutex<Log>,
    /// The base, held by whoever runs the checkpoint.
    pub(crate) base: Mutex<Base>,
    pub(crate) progress: Mutex<Progress>,
    pub(crate) env: EnvRef,
    pub(crate) config: Config,
}

#[derive(Default)]
pub(crate) struct Queue {
    pub(crate) waiting: VecDeque<(Operation, Done)>,
    /// Somebody drains, or has been asked to.
    pub(crate) draining: bool,
}

impl Kv {
    /// Opens a store, making an empty one on an empty medium, and recovers whatever was durable. Blocks on the medium.
    ///
    /// `tables` are the tables used from now on; new names may be added at any open. `env` brings the threads that block on the
    /// medium, and the salts of the log, which nobody may guess who can have rows stored.
    pub fn open(
        medium: Arc<dyn Medium>,
        tables: &[&str],
        env: EnvRef,
        config: Config,
    ) -> Result<Self, OpenError> {
        let base = open_base(medium.as_ref(), config.cache_bytes)?;
        let tables = base.prepare(tables)?;
        let format = base.log_format()?;
        if format == LogFormat::Two {
            log::remove_format_1(medium.as_ref())?;
        }
        let replayed = Memtable::default();
        let last = recovery::replay(medium.as_ref(), format, base.applied()?, &replayed)?;
        let mut log = Log::open(medium.as_ref(), env.clone(), config.log_bytes)?;
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
            env,
            config,
        };
        let kv = Self { engine: Arc::new(engine) };
        if recovered {
            // A log of format 1 is taken over with this: the same transaction that has its batches says that it is no longer read.
            // Where this fails, for instance on a full medium, reads go on and the first change tries again.
            let _ = kv.checkpoint_frozen();
        }
        Ok(kv)
    }

    /// Everything committed so far.
    pub fn snapshot(&self) -> Snapshot {
        self.engine.published.snapshot()
    }

    /// The world it was opened in.
    pub fn env(&self) -> &EnvRef {
        &self.engine.env
    }

    /// The oldest sequence number that any living snapshot holds.
    pub fn oldest_snapshot(&self) -> u64 {
        self.engine.published.floor()
    }

    /// Queues an operation for the next batch, and has it committed unless a batch is under way. `done` runs on the
    /// draining thread and must not block.
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

    /// Runs `operation` in the next batch; resolves when its result is durable.
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

/// Opens the base. The log is made after it: where there is no log, a base that cannot be read is one whose making
/// was cut short, with nothing in it yet, and it is made again.
fn open_base(medium: &dyn Medium, cache_bytes: usize) -> Result<Base, OpenError> {
    let unfinished = !medium.list()?.iter().any(|name| name.starts_with("log."));
    match Base::open(medium.open("index")?, cache_bytes, unfinished) {
        Err(OpenError::Kv(error)) if unfinished && error.is_damage() => {
            medium.remove("index")?;
            Base::open(medium.open("index")?, cache_bytes, unfinished)
        }
        opened => opened,
    }
}
