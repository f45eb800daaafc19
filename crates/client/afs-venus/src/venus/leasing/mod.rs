//! Changes under leases of directories (docs/protocol/extensions.md "Leases of directories"): decided here, sent later as numbered lists.
//!
//! A change of names is decided when the client holds the lease of its directory. Its reply is what the server's would be, so
//! that the caches are changed as after a call. Before the server is asked about an object it is sent what was decided about it.

mod deciding;
mod ending;
mod kept_locks;
mod list_replies;
mod lists;
mod loss;
mod plan;
mod plan_of_second;
mod small_stores;
mod taking;
mod whole_stores;

use std::pin::Pin;
use std::sync::Arc;

use afs_rpc::EnvExt;

use crate::error::{ErrorKind, Result, VenusError};
use crate::key::Key;
use crate::leases::{Journal, Lease, Next};
use crate::location::Volume;
use crate::venus::Venus;

type Settling<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

impl Venus {
    /// Before a call: sends what was decided under leases about these objects of a volume; without objects, all that was decided in it.
    pub(super) async fn send_first(&self, volume: &Volume, about: Option<&[Key]>) -> Result<()> {
        for lease in self.leases.unsettled(volume, about) {
            self.settle(&lease).await?;
        }
        Ok(())
    }

    /// Sends what was decided about an object, and returns why a change of it could not be made.
    pub(super) async fn settle_object(&self, key: Key) -> Result<()> {
        if let Some(volume) = self.location.volume_of(key) {
            self.send_first(&volume, Some(&[key])).await?;
        }
        self.leases.take_failure(key).map_or(Ok(()), Err)
    }

    /// Returns when the server has all that was decided under a lease before this, or no list and no call can bring it there any more.
    ///
    /// # Errors
    /// The server cannot be reached, or the volume is busy: it is sent later.
    pub(super) fn settle<'a>(&'a self, lease: &'a Arc<Lease>) -> Settling<'a> {
        let (me, lease) = (self.as_user(self.context.user), lease.clone());
        // A task of its own: what was begun ends, also if the program gives up.
        let settling = self.env.spawn_with_result(async move { me.settle_now(&lease).await });
        Box::pin(async move {
            let settled = settling.await;
            settled.unwrap_or_else(|_| Err(VenusError::new(ErrorKind::ShutDown, "LeaseList")))
        })
    }

    async fn settle_now(&self, lease: &Arc<Lease>) -> Result<()> {
        let mut unstored = Vec::new();
        let settled = {
            let before = lease.journal(|journal| journal.pushed());
            let _turn = lease.sending.lock().await;
            self.settle_up_to(lease, before, &mut unstored).await
        };
        for unstored in unstored {
            Box::pin(self.store_unstored(unstored)).await;
        }
        settled
    }

    async fn settle_up_to(
        &self,
        lease: &Arc<Lease>,
        changes: u64,
        unstored: &mut Vec<loss::Unstored>,
    ) -> Result<()> {
        while !lease.journal(|journal| journal.is_settled(changes)) {
            if lease.is_lost() {
                // Boxed: the task of each settlement would have room for it.
                Box::pin(self.make_good(lease, unstored)).await?;
                continue;
            }
            match lease.journal(Journal::next) {
                Some(Next::List(list)) => self.send_lease_list(lease, &list).await?,
                Some(Next::Store(entry)) => Box::pin(self.send_whole(lease, &entry, unstored)).await?,
                None => return Ok(()),
            }
        }
        if lease.is_lost() {
            Box::pin(self.make_good(lease, unstored)).await?;
            self.return_lease(lease).await;
        }
        Ok(())
    }
}

/// Whether the same may be sent again later.
fn may_be_sent_again(error: &VenusError) -> bool {
    matches!(
        error.kind,
        ErrorKind::ServerUnreachable
            | ErrorKind::Interrupted
            | ErrorKind::VolumeBusy
            | ErrorKind::VolumeOffline
            | ErrorKind::ShutDown
    )
}
