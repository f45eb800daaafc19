//! Group flush: puts the pack that takes chunks, and waits for all that are being put.

use std::sync::Arc;

use afs_drive::{BoxFuture, DriveError};
use afs_env::Stall;
use afs_env::future::{join, join_all};
use afs_env::sync::oneshot;

use crate::drive::Inner;

/// Calls that wait for a flush. Those that come during one share the next, and so its pack.
#[derive(Default)]
pub(crate) struct Waiting {
    calls: Vec<oneshot::Sender<Result<(), DriveError>>>,
    running: bool,
}

impl Inner {
    pub(crate) fn sync(self: &Arc<Self>) -> BoxFuture<Result<(), DriveError>> {
        let (sender, receiver) = oneshot::channel();
        let idle = {
            let mut waiting = self.waiting.lock();
            waiting.calls.push(sender);
            !std::mem::replace(&mut waiting.running, true)
        };
        if idle {
            let inner = self.clone();
            self.env.start(Box::pin(async move { inner.flush().await }), Stall::None);
        }
        Box::pin(async move { receiver.await.unwrap_or(Err(DriveError::Closed)) })
    }

    /// Flushes for all waiting calls, until none is left.
    async fn flush(self: Arc<Self>) {
        loop {
            let calls = {
                let mut waiting = self.waiting.lock();
                waiting.running = !waiting.calls.is_empty();
                std::mem::take(&mut waiting.calls)
            };
            if calls.is_empty() {
                return;
            }
            let result = self.flush_once().await;
            for call in calls {
                _ = call.send(result.clone());
            }
        }
    }

    /// Completes when every pack with a chunk whose write has completed is in the store, and this run is still the newest.
    ///
    /// After an error the packs are still in memory: the next flush puts them again.
    async fn flush_once(self: &Arc<Self>) -> Result<(), DriveError> {
        let (packs, told, unchecked) = {
            let mut packs = self.packs.lock();
            packs.check()?;
            let mut to_put = packs.failed();
            to_put.extend(packs.seal());
            (to_put, packs.await_pending(), packs.take_unchecked())
        };
        packs.into_iter().for_each(|pack| self.start_put(pack));
        let check = async { if unchecked { self.check_run().await } else { Ok(()) } };
        let (checked, told) = join(check, join_all(told)).await;
        if checked.is_err() {
            self.packs.lock().set_unchecked();
        }
        for result in told {
            result.unwrap_or(Err(DriveError::Closed))?;
        }
        checked
    }
}
