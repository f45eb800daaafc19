//! Renewal of capabilities in the background: all of a user's that are in use, in one call.

use std::sync::Arc;

use afs_rpc::{CallError, EnvExt};
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, BULK_CAPABILITIES_MAX, CapabilityOutcome, CapabilityRequests};
use afs_wire::rpc::Request;

use super::capabilities::{Need, Renewal};
use super::grants::given;
use super::opening::CALL_MAX;
use super::server::ServerPath;
use crate::calls::Target;

impl ServerPath {
    /// Asks again for the capability of a need, which is due, and together with it for others that will be.
    pub(super) fn renew(self: &Arc<Self>, target: &Target, need: &Need) {
        let now = self.now();
        let renewals = self.capabilities.lock().renewals(need, now, BULK_CAPABILITIES_MAX);
        if renewals.len() < 2 {
            return self.ask_for(target, need);
        }
        let (me, target, need) = (self.clone(), target.clone(), *need);
        self.common.env.spawn(Box::pin(async move {
            if me.renew_all(&target, &renewals).await.is_err() {
                me.capabilities.lock().not_asked(&renewals);
                me.ask_for(&target, &need);
            }
            me.changed.notify_waiters();
        }));
    }

    /// Fails if the server does not know the call.
    async fn renew_all(&self, target: &Target, renewals: &[Renewal]) -> Result<(), ()> {
        self.common.counters.call(fs::BulkCapability::NAME);
        let (asked, reset) = (self.now(), self.server.reset.get());
        let wanted = CapabilityRequests::first_of(renewals.iter().map(Renewal::request));
        let request = fs::BulkCapability { wanted };
        let outcomes = match self.common.env.timeout(CALL_MAX, target.connection.call(&request)).await {
            Ok(Ok(reply)) => reply.outcomes.into_vec(),
            Ok(Err(CallError::Abort(AbortCode::RXGEN_OPCODE))) => {
                self.server.no_data_path.note(self.now(), reset);
                return Err(());
            }
            // What is here is used until it ends.
            _ => Vec::new(),
        };
        let mut capabilities = self.capabilities.lock();
        for (renewal, outcome) in renewals.iter().zip(outcomes) {
            let reply = CapabilityOutcome::into_reply(outcome).ok();
            let given = reply.and_then(|reply| given(&reply, renewal.used(), asked));
            capabilities.renewed(renewal, given, self.now());
        }
        Ok(())
    }
}
