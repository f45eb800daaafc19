//! Replication of the shared rows into this server's replica.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::future::{Either, select};

use super::replica::Replica;
use super::rows::Sharing;
use super::store::{PAGE_ROWS_MAX, SharedError, SharedStore};

/// Time between probes of the store, reachable or not.
const LISTEN: Duration = Duration::from_secs(5);
const LISTEN_DOWN: Duration = Duration::from_secs(1);
/// Pauses between attempts to follow, at first and at most.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Reads a replica of all rows, as of one revision.
pub(super) async fn load(store: &dyn SharedStore) -> Result<Replica, SharedError> {
    let mut rows = BTreeMap::new();
    let mut page = store.page(None, None, PAGE_ROWS_MAX).await?;
    // That of the first page: changes during the reading of the others are repeated by the watch.
    let revision = page.revision;
    loop {
        let after = page.rows.last().map(|(key, _)| key.clone());
        rows.extend(page.rows);
        if !page.more || after.is_none() {
            return Ok(Replica::of(rows, revision));
        }
        page = store.page(Some(revision), after, PAGE_ROWS_MAX).await?;
    }
}

/// Applies all changes, for ever.
pub(super) async fn follow(sharing: Arc<Sharing>) {
    let mut pause = PAUSE_FIRST;
    loop {
        let began = sharing.env.now();
        let error = sharing.follow_once().await;
        tracing::debug!(%error, "the shared databases are followed anew");
        if let SharedError::Forgotten(_) = error {
            sharing.reload().await;
        }
        if sharing.env.now().saturating_since(began) > PAUSE_MAX {
            pause = PAUSE_FIRST;
        }
        sharing.env.sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Probes the store from time to time, so that its loss and return are noticed by an idle server, and that
/// the age of this server's replica is known.
pub(super) async fn listen(sharing: Arc<Sharing>) {
    loop {
        let pause = if sharing.has_quorum() { LISTEN } else { LISTEN_DOWN };
        // Errors found by other tasks are examined at once, but not more often than that.
        let trouble = sharing.stuck.notified();
        select(sharing.env.sleep(pause), async {
            trouble.await;
            sharing.env.sleep(LISTEN_DOWN).await;
        })
        .await;
        let asked = sharing.env.now();
        match sharing.env.timeout(sharing.options.confirm_max, sharing.caught_up_with_all()).await {
            Ok(Ok(())) => {
                sharing.health.confirm(asked);
                sharing.answered();
            }
            Ok(Err(error)) => sharing.failed(&error.to_string()),
            Err(_) => sharing.failed("no answer in time"),
        }
    }
}

impl Sharing {
    async fn follow_once(&self) -> SharedError {
        let after = self.replica().revision();
        let mut watch = match self.store.watch(after).await {
            Ok(watch) => watch,
            Err(error) => return error,
        };
        loop {
            match select(watch.next(), self.stuck.notified()).await {
                Either::Left(Ok(batch)) => {
                    self.replica_mut().apply(batch);
                    self.moved.notify_waiters();
                }
                Either::Left(Err(error)) => return error,
                Either::Right(()) => return SharedError::Unavailable("what happens is not told".into()),
            }
        }
    }

    async fn caught_up_with_all(&self) -> Result<(), SharedError> {
        let guards = self.guards();
        let now = self.store.read(guards.clone()).await?;
        let wanted: Vec<_> =
            guards.iter().zip(now).filter_map(|(key, row)| Some((key, row?.revision))).collect();
        self.reached(|replica| wanted.iter().all(|(key, revision)| replica.revision_of(key) >= *revision))
            .await;
        Ok(())
    }

    /// Copies all rows again: more has changed than the store can report.
    async fn reload(&self) {
        if let Ok(replica) = load(&*self.store).await {
            *self.replica_mut() = replica;
            self.moved.notify_waiters();
        }
    }

    /// Records a reply of the store.
    pub(super) fn answered(&self) {
        if self.health.answered() {
            tracing::info!("the shared databases answer again");
        }
    }

    /// Records a missing reply of the store.
    pub(super) fn failed(&self, why: &str) {
        if self.health.fail(self.env.now()) {
            tracing::warn!(why, "the shared databases do not answer; reads go on from what is here");
        }
        // The watch may wait on a dead connection.
        self.stuck.notify_waiters();
    }
}
