//! A new drive, which waits for the file server that gives it a key.

use std::sync::Arc;

use afs_datapath::capability::{KeyEpoch, Secret, StoreNumber, TicketId};
use afs_datapath::frame::{ChunkReply, ChunkRequest};
use afs_datapath::session::{ChunkCall, Chunks, Failure, Objects, Opened, ReadRequest, StoreRequest, Taken};
use afs_env::sync::Notify;
use afs_env::{BoxFuture, EnvExt, EnvRef};

/// Keeps the key that a file server gives, durably. Called on a thread for blocking work; `false` if it could not, or there
/// was one before.
pub type Adopt = Arc<dyn Fn(KeyEpoch, &Secret) -> bool + Send + Sync>;

/// A drive without a key: serves nothing but the request to take one, by a capability under the secret of its join key.
#[derive(Clone)]
pub struct JoiningDrive {
    env: EnvRef,
    adopt: Adopt,
    adopted: Arc<Notify>,
}

impl JoiningDrive {
    /// A drive that is not adopted yet.
    #[must_use]
    pub fn new(env: EnvRef, adopt: Adopt) -> Self {
        Self { env, adopt, adopted: Arc::default() }
    }

    /// Completes when a file server has given a key. The join key is void from then on: the drive is to be served with the
    /// new one, and the file server looks whether it is.
    pub async fn adopted(&self) {
        self.adopted.notified().await;
    }
}

impl Objects for JoiningDrive {
    fn read(&self, _: ReadRequest) -> BoxFuture<'static, Result<Opened, Failure>> {
        Box::pin(async { Err(Failure::NoObject) })
    }

    fn store(&self, _: StoreRequest, _: Taken) -> BoxFuture<'static, Result<TicketId, Failure>> {
        Box::pin(async { Err(Failure::NoObject) })
    }

    fn chunks(&self) -> Option<&dyn Chunks> {
        Some(self)
    }
}

impl Chunks for JoiningDrive {
    fn perform(&self, call: ChunkCall, _: Taken) -> BoxFuture<'static, Result<ChunkReply, Failure>> {
        let own = self.clone();
        Box::pin(async move {
            let (ChunkRequest::Adopt { epoch, key }, StoreNumber(0)) = (call.what, call.store) else {
                return Err(Failure::Unavailable);
            };
            let adopt = own.adopt.clone();
            let kept = own.env.run_blocking(move || adopt(epoch, &key.0)).await.unwrap_or(false);
            if !kept {
                return Err(Failure::Io);
            }
            tracing::info!(peer = %call.peer, "a file server has taken this drive");
            own.adopted.notify_one();
            Ok(ChunkReply::Done)
        })
    }

    fn open(&self, _: ChunkCall) -> BoxFuture<'static, Result<Opened, Failure>> {
        Box::pin(async { Err(Failure::Unavailable) })
    }
}
