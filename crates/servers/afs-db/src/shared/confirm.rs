//! Confirmation that this server's replica is as new as the store: batched linearizable reads.

use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::sync::oneshot;
use parking_lot::Mutex;

use super::rows::SharedRows;
use super::store::{Revision, SharedError};
use crate::LocationError;

/// Pauses between queries to a store that does not reply, at first and at most.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(1);

type Confirmed = Result<Revision, SharedError>;

/// Tasks that wait for a confirmation. One query at a time serves all tasks that came before it was sent.
#[derive(Default)]
pub(super) struct Confirmations(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    waiting: Vec<oneshot::Sender<Confirmed>>,
    asking: bool,
}

impl SharedRows {
    /// Waits until this server has everything that was acknowledged anywhere before now; returns the revision
    /// of the guard.
    pub(super) async fn confirm(&self, patience: Duration) -> Result<Revision, LocationError> {
        let env = &self.sharing.env;
        match env.timeout(patience, self.caught_up()).await {
            Ok(Ok(revision)) => Ok(revision),
            Ok(Err(SharedError::Refused(why))) => Err(LocationError::Store(why)),
            Ok(Err(_)) => Err(LocationError::NoQuorum),
            Err(_) => {
                self.sharing.failed("no answer in time");
                Err(LocationError::NoQuorum)
            }
        }
    }

    /// As [`SharedRows::confirm`], but does not wait for a store that has been unreachable for long. While
    /// this server looks for a route to it, others may have one and continue to change rows: so the first
    /// seconds of silence are waited for.
    pub(super) async fn confirm_while_there_is_hope(&self) {
        let (sharing, env) = (&self.sharing, &self.sharing.env);
        let hope = sharing.options.change_max;
        let end = env.now() + 2 * hope;
        let mut pause = PAUSE_FIRST;
        loop {
            let silent = sharing.health.down_since().map(|since| env.now().saturating_since(since));
            if silent.is_some_and(|silent| silent >= hope) || env.now() >= end {
                return;
            }
            if self.confirm(sharing.options.confirm_max).await != Err(LocationError::NoQuorum) {
                return;
            }
            let left = hope.saturating_sub(silent.unwrap_or_default()).max(PAUSE_FIRST);
            env.sleep(pause.min(left)).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn caught_up(&self) -> Confirmed {
        let sharing = &self.sharing;
        let revision = self.ask().await?;
        sharing.reached(|replica| replica.revision_of(&self.database.guard) >= revision).await;
        sharing.answered();
        Ok(revision)
    }

    /// The revision of the guard, read after this was called.
    async fn ask(&self) -> Confirmed {
        let (tell, told) = oneshot::channel();
        let first = {
            let mut queue = self.database.confirmations.0.lock();
            queue.waiting.push(tell);
            !std::mem::replace(&mut queue.asking, true)
        };
        if first {
            let rows = self.clone();
            // The query for all must not belong to a task that may stop waiting.
            self.sharing.env.spawn(Box::pin(async move { rows.ask_for_all().await }));
        }
        told.await.unwrap_or_else(|_| Err(SharedError::Unavailable("nobody asks".into())))
    }

    async fn ask_for_all(&self) {
        loop {
            let waiting = {
                let mut queue = self.database.confirmations.0.lock();
                if queue.waiting.is_empty() {
                    queue.asking = false;
                    return;
                }
                std::mem::take(&mut queue.waiting)
            };
            let answer = self.sharing.store.read(vec![self.database.guard.clone()]).await;
            if let Err(error) = &answer {
                self.sharing.failed(&error.to_string());
            }
            let told =
                answer.map(|rows| rows.into_iter().flatten().next().map_or(Revision(0), |row| row.revision));
            waiting.into_iter().for_each(|tell| _ = tell.send(told.clone()));
        }
    }
}
