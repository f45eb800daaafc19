//! Optimistic transactions on the shared store: rules run on this server's replica, and a commit verifies the
//! revision that they read.

use std::time::Duration;

use afs_rpc::{EnvExt, Instant};

use super::overlay::Overlay;
use super::rows::SharedRows;
use super::store::{Outcome, Revision, SharedError, TRANSACTION_BYTES_MAX, Transaction, Versioned, Written};
use crate::{LocationError, RowsMut};

/// Pauses between attempts at a store that does not reply, at first and at most.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Result of one run of the rules.
struct Attempt<T, E> {
    outcome: Result<T, E>,
    writes: Vec<Written>,
    guard: Revision,
}

/// Result of a commit.
enum Committed {
    At(Revision),
    /// Another change came first.
    Late,
}

impl SharedRows {
    /// Runs a change until it is committed.
    pub(super) async fn run<T, E>(
        &self,
        change: impl Fn(&mut dyn RowsMut) -> Result<T, E> + Send + Sync,
    ) -> Result<T, E>
    where
        T: Send,
        E: From<LocationError> + Send,
    {
        let deadline = self.sharing.env.now() + self.sharing.options.change_max;
        self.refuse_when_long_down()?;
        let _turn = self.database.turn.lock().await;
        loop {
            let Attempt { outcome, writes, guard } = self.attempt(&change);
            if outcome.is_err() || writes.is_empty() {
                // A refusal is a result like a change: it must not come from stale rows.
                let now = self.confirmed_by(deadline).await?;
                if now == guard {
                    return outcome;
                }
            } else if let Committed::At(revision) = self.commit(guard, writes, deadline).await? {
                self.follow_to(revision).await;
                return outcome;
            }
        }
    }

    fn attempt<T, E>(&self, change: &impl Fn(&mut dyn RowsMut) -> Result<T, E>) -> Attempt<T, E> {
        let replica = self.sharing.replica();
        let mut rows = Overlay::on(&replica);
        let outcome = change(&mut rows);
        Attempt { outcome, writes: rows.into_writes(), guard: replica.revision_of(&self.database.guard) }
    }

    /// A store that has been unreachable for long is not waited for once more.
    fn refuse_when_long_down(&self) -> Result<(), LocationError> {
        let sharing = &self.sharing;
        let since = sharing.health.down_since();
        let long = |since| sharing.env.now().saturating_since(since) > sharing.options.change_max;
        if since.is_some_and(long) { Err(LocationError::NoQuorum) } else { Ok(()) }
    }

    async fn confirmed_by(&self, deadline: Instant) -> Result<Revision, LocationError> {
        let mut pause = Pause::default();
        loop {
            match self.confirm(self.sharing.options.confirm_max).await {
                Err(LocationError::NoQuorum) => pause.wait(self, deadline).await?,
                answer => return answer,
            }
        }
    }

    /// Sends a commit until its result is known. Retransmission is harmless: the guard has moved if the
    /// commit happened, and then the marker identifies it.
    async fn commit(
        &self,
        guard: Revision,
        writes: Vec<Written>,
        deadline: Instant,
    ) -> Result<Committed, LocationError> {
        let (id, transaction) = self.transaction(guard, writes)?;
        let mut pause = Pause::default();
        loop {
            match self.sharing.store.commit(transaction.clone()).await {
                Ok(Outcome::Done(revision)) => return Ok(Committed::At(revision)),
                Ok(Outcome::Conflict(rows)) => return self.late(&id, &rows, deadline).await,
                Err(SharedError::Refused(why)) => return Err(LocationError::Store(why)),
                Err(error) => {
                    self.sharing.failed(&error.to_string());
                    pause.wait(self, deadline).await?;
                }
            }
        }
    }

    fn transaction(
        &self,
        expected: Revision,
        mut writes: Vec<Written>,
    ) -> Result<([u8; 16], Transaction), LocationError> {
        let id: [u8; 16] = self.sharing.env.random_bytes();
        let bytes: usize =
            writes.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, Vec::len)).sum();
        if bytes > TRANSACTION_BYTES_MAX {
            return Err(LocationError::Store(format!(
                "a change of {bytes} bytes is more than the shared store takes at once, {TRANSACTION_BYTES_MAX}"
            )));
        }
        let (guard, marker) = (self.database.guard.clone(), self.database.marker.clone());
        writes.extend([(guard.clone(), Some(id.to_vec())), (marker.clone(), Some(id.to_vec()))]);
        let look = vec![guard.clone(), marker];
        Ok((id, Transaction { guard, expected, writes, look }))
    }

    /// Handles a guard that had moved: by an earlier transmission of this very commit, or by another's
    /// change, which this server then waits to see.
    async fn late(
        &self,
        id: &[u8; 16],
        rows: &[Option<Versioned>],
        deadline: Instant,
    ) -> Result<Committed, LocationError> {
        let (guard, marker) = (rows.first().cloned().flatten(), rows.get(1).cloned().flatten());
        if let Some(own) = marker.filter(|row| row.value == id[..]) {
            return Ok(Committed::At(own.revision));
        }
        let revision = guard.map_or(Revision(0), |row| row.revision);
        let seen = self.sharing.reached(|replica| replica.revision_of(&self.database.guard) >= revision);
        let patience = deadline.saturating_since(self.sharing.env.now());
        if self.sharing.env.timeout(patience, seen).await.is_err() {
            self.sharing.failed("what others changed is not told");
            return Err(LocationError::NoQuorum);
        }
        Ok(Committed::Late)
    }

    /// Waits until this server sees its own write. The write is known to be durable; a reader that must see
    /// it confirms first.
    async fn follow_to(&self, revision: Revision) {
        let seen = self.sharing.reached(|replica| replica.revision() >= revision);
        if self.sharing.env.timeout(self.sharing.options.confirm_max, seen).await.is_err() {
            self.sharing.failed("a change of this server's own is not told");
        }
    }
}

/// Increasing pauses, until a deadline.
struct Pause(Duration);

impl Default for Pause {
    fn default() -> Self {
        Pause(PAUSE_FIRST)
    }
}

impl Pause {
    async fn wait(&mut self, rows: &SharedRows, deadline: Instant) -> Result<(), LocationError> {
        let env = &rows.sharing.env;
        if env.now() + self.0 >= deadline {
            return Err(LocationError::NoQuorum);
        }
        env.sleep(self.0).await;
        self.0 = (self.0 * 2).min(PAUSE_MAX);
        Ok(())
    }
}
