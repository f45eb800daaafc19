//! End of a lease: its recall by the server, its return, and the stop of the mount.

use std::sync::Arc;

use afs_wire::cb::RecallLease;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs;

use crate::counters::count;
use crate::error::Result;
use crate::leases::Lease;
use crate::venus::Venus;

impl Venus {
    /// RecallLease: the reply says that the server has all that was decided, and that nothing more will be. Locks that are kept under the
    /// lease are released before it.
    pub(in crate::venus) async fn lease_recalled(
        &self,
        request: RecallLease,
    ) -> std::result::Result<(), AbortCode> {
        let Some(lease) = self.leases.recalled(request.dir, request.lease) else { return Ok(()) };
        count(&self.counters.leases_recalled);
        lease.stop();
        if let Err(error) = self.without_waiting().settle(&lease).await {
            tracing::warn!(%error, dir = %request.dir, "what was decided under a lease that is recalled cannot be sent");
            return Err(Errno::EAGAIN.to_uae());
        }
        self.release_kept_locks(&lease).await;
        self.has_ended(&lease);
        Ok(())
    }

    /// Ends a lease of which nothing is left, soon if the server cannot be reached.
    pub(in crate::venus) async fn end_lease(&self, lease: &Arc<Lease>) {
        lease.stop();
        match self.settle(lease).await {
            Ok(()) => self.return_lease(lease).await,
            Err(_) => {
                lease.return_later();
                self.send_soon(lease);
            }
        }
    }

    /// Returns a lease under which nothing is decided any more, and of which all is settled.
    pub(super) async fn return_lease(&self, lease: &Arc<Lease>) {
        if self.leases.all().iter().any(|known| Arc::ptr_eq(known, lease)) {
            self.release_kept_locks(lease).await;
            self.has_ended(lease);
            let request = fs::ReturnLease { dir: lease.dir.fid, lease: lease.id };
            // Otherwise the server recalls it some time.
            let me = self.without_waiting();
            drop(me.calls.call(&me.context, &lease.volume, request).await);
        }
    }

    fn has_ended(&self, lease: &Arc<Lease>) {
        self.leases.has_ended(lease);
        self.leases.remove(lease);
    }

    /// Before the end of the mount: sends all that was decided, and returns the leases. What cannot be sent is given up.
    pub(in crate::venus) async fn end_leases(&self) -> Result<()> {
        let mut outcome = Ok(());
        for lease in self.leases.all() {
            lease.stop();
            let settled = self.settle(&lease).await;
            match &settled {
                Ok(()) => self.return_lease(&lease).await,
                Err(error) => self.give_up_lease(&lease, error).await,
            }
            outcome = outcome.and(settled);
        }
        outcome
    }
}
