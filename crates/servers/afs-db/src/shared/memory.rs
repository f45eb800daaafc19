//! Shared store in memory, with faults between it and its servers: for tests and the simulator.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::sync::Notify;
use afs_rpc::{EnvExt, EnvRef};
use parking_lot::Mutex;

use super::store::{
    Batch, Changed, Outcome, Page, Pending, Revision, SharedError, SharedStore, Transaction, Versioned, Watch,
};

/// The store itself. Clones are the same store.
#[derive(Clone, Default)]
pub struct MemoryShared {
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
}

#[derive(Default)]
struct State {
    rows: BTreeMap<Vec<u8>, Versioned>,
    revision: Revision,
    /// Changes after `forgotten`.
    history: Vec<Changed>,
    forgotten: Revision,
}

/// Faults between a server and the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    /// Nothing gets through.
    pub cut: bool,
    /// Of 256 commits, how many happen without a reply.
    pub lost_answers: u8,
    /// Of 256 calls, how many do not arrive.
    pub lost_calls: u8,
    /// Longest delay, in each direction.
    pub delay_max: Duration,
}

/// The store as reached by one server.
#[derive(Clone)]
pub struct MemoryStore {
    env: EnvRef,
    shared: MemoryShared,
    faults: Arc<Mutex<Faults>>,
}

/// Time-out of an unreachable server.
const PATIENCE: Duration = Duration::from_millis(500);

impl MemoryShared {
    /// The store as reached by a server in `env`, without faults yet.
    #[must_use]
    pub fn reached_from(&self, env: EnvRef) -> MemoryStore {
        MemoryStore { env, shared: self.clone(), faults: Arc::default() }
    }

    /// Drops the history: a server that is behind has to copy everything again.
    pub fn forget(&self) {
        let mut state = self.state.lock();
        state.forgotten = state.revision;
        state.history.clear();
    }

    fn commit(&self, transaction: &Transaction) -> Outcome {
        let mut state = self.state.lock();
        if state.rows.get(&transaction.guard).map_or(Revision(0), |row| row.revision) != transaction.expected
        {
            return Outcome::Conflict(
                transaction.look.iter().map(|key| state.rows.get(key).cloned()).collect(),
            );
        }
        let revision = Revision(state.revision.0 + 1);
        state.revision = revision;
        for (key, value) in transaction.writes.iter().cloned() {
            match &value {
                Some(value) => {
                    drop(state.rows.insert(key.clone(), Versioned { value: value.clone(), revision }))
                }
                None => drop(state.rows.remove(&key)),
            }
            state.history.push(Changed { key, value, revision });
        }
        drop(state);
        self.changed.notify_waiters();
        Outcome::Done(revision)
    }
}

impl MemoryStore {
    /// Sets the faults from now on.
    pub fn set(&self, faults: Faults) {
        *self.faults.lock() = faults;
        self.shared.changed.notify_waiters();
    }

    fn faults(&self) -> Faults {
        *self.faults.lock()
    }

    fn happens(&self, of_256: u8) -> bool {
        self.env.random_bytes::<1>()[0] < of_256
    }

    /// One trip between a server and the store.
    async fn travel(&self, lost: u8) -> Result<(), SharedError> {
        let micros = u64::try_from(self.faults().delay_max.as_micros()).unwrap_or(u64::MAX);
        if micros > 0 {
            self.env.sleep(Duration::from_micros(self.env.random_u64() % micros)).await;
        }
        if self.faults().cut || self.happens(lost) {
            self.env.sleep(PATIENCE).await;
            return Err(SharedError::Unavailable("cut off".into()));
        }
        Ok(())
    }

    /// There, a query on the state, and back.
    async fn ask<T>(&self, query: impl FnOnce(&State) -> T) -> Result<T, SharedError> {
        self.travel(self.faults().lost_calls).await?;
        let answer = query(&self.shared.state.lock());
        self.travel(0).await?;
        Ok(answer)
    }
}

impl SharedStore for MemoryStore {
    fn read(&self, keys: Vec<Vec<u8>>) -> Pending<'_, Vec<Option<Versioned>>> {
        Box::pin(self.ask(move |state| keys.iter().map(|key| state.rows.get(key).cloned()).collect()))
    }

    /// As of now: no history is kept for pages. A reader of several pages gets the changes in between from
    /// the watch.
    fn page(&self, _: Option<Revision>, after: Option<Vec<u8>>, limit: usize) -> Pending<'_, Page> {
        Box::pin(async move {
            self.travel(self.faults().lost_calls).await?;
            let state = self.shared.state.lock();
            let behind = |key: &Vec<u8>| after.as_ref().is_none_or(|after| key > after);
            let mut rows: Vec<_> = state.rows.iter().filter(|(key, _)| behind(key)).take(limit + 1).collect();
            let more = rows.len() > limit;
            rows.truncate(limit);
            let rows = rows.into_iter().map(|(key, row)| (key.clone(), row.clone())).collect();
            Ok(Page { revision: state.revision, rows, more })
        })
    }

    fn commit(&self, transaction: Transaction) -> Pending<'_, Outcome> {
        Box::pin(async move {
            self.travel(self.faults().lost_calls).await?;
            let outcome = self.shared.commit(&transaction);
            self.travel(self.faults().lost_answers).await?;
            Ok(outcome)
        })
    }

    fn watch(&self, after: Revision) -> Pending<'_, Box<dyn Watch>> {
        Box::pin(async move {
            self.travel(self.faults().lost_calls).await?;
            Ok(Box::new(MemoryWatch { store: self.clone(), seen: after }) as Box<dyn Watch>)
        })
    }
}

struct MemoryWatch {
    store: MemoryStore,
    seen: Revision,
}

impl MemoryWatch {
    /// The changes since, if any.
    fn fresh(&mut self) -> Result<Option<Batch>, SharedError> {
        let state = self.store.shared.state.lock();
        if self.seen < state.forgotten {
            return Err(SharedError::Forgotten(self.seen));
        }
        let after = state.history.partition_point(|change| change.revision <= self.seen);
        let fresh: Batch = state.history[after..].to_vec();
        self.seen = state.revision;
        Ok(Some(fresh).filter(|fresh| !fresh.is_empty()))
    }
}

impl Watch for MemoryWatch {
    fn next(&mut self) -> Pending<'_, Batch> {
        Box::pin(async move {
            loop {
                let changed = self.store.shared.changed.clone().notified_owned();
                // A connection that is cut delivers nothing at all.
                if !self.store.faults().cut
                    && let Some(batch) = self.fresh()?
                {
                    self.store.travel(0).await?;
                    return Ok(batch);
                }
                changed.await;
            }
        })
    }
}
