//! Asking the store how far the others are.

use std::sync::Mutex;
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::sync::{lock, oneshot};

use super::rows::SharedRows;
use super::store::{Revision, SharedError};
use crate::LocationError;

type Told = Result<Revision, SharedError>;

/// Those who wait to be told how far the others are. One question at a time is answered for all who came before it was
/// asked.
#[derive(Default)]
pub(super) struct Confirmations(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    waiting: Vec<oneshot::Sender<Told>>,
    asking: bool,
}

impl SharedRows {
    /// Waits until this server has everything that was acknowledged anywhere before now; answers the revision of the
    /// guard.
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

    async fn caught_up(&self) -> Told {
        let sharing = &self.sharing;
        let revision = self.ask().await?;
        sharing.reached(|replica| replica.revision_of(&self.database.guard) >= revision).await;
        sharing.answered();
        Ok(revision)
    }

    /// The revision of the guard, read after this was called.
    async fn ask(&self) -> Told {
        let (tell, told) = oneshot::channel();
        let first = {
            let mut queue = lock(&self.database.confirmations.0);
            queue.waiting.push(tell);
            !std::mem::replace(&mut queue.asking, true)
        };
        if first {
            let rows = self.clone();
            // Whoever asks for all must not be one of those who may stop waiting.
            self.sharing.env.spawn(Box::pin(async move { rows.ask_for_all().await }));
        }
        told.await.unwrap_or_else(|_| Err(SharedError::Unavailable("nobody asks".into())))
    }

    async fn ask_for_all(&self) {
        loop {
            let waiting = {
                let mut queue = lock(&self.database.confirmations.0);
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
            waiting.into_iter().for_each(|tell| tell.send(told.clone()));
        }
    }
}
