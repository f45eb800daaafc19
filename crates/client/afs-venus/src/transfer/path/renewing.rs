//! Renewal of capabilities in the background: all of a user's that are in use, in one call.

use std::sync::Arc;

use afs_wire::fs::{CAPABILITIES_WANTED_MAX, CapabilityOutcome};

use super::capabilities::{Need, Renewal};
use super::grants::given;
use super::server::ServerPath;
use crate::calls::Target;

impl ServerPath {
    /// Asks again for the capability of a need, which is due, and together with it for others that will be.
    pub(super) fn renew(self: &Arc<Self>, target: &Target, need: &Need) {
        let now = self.now();
        let renewals = self.capabilities.lock().renewals(need, now, CAPABILITIES_WANTED_MAX);
        if renewals.len() < 2 {
            return self.ask_for(target, need);
        }
        let (me, target) = (self.clone(), target.clone());
        self.common.env.spawn(Box::pin(async move {
            me.renew_all(&target, &renewals).await;
            me.changed.notify_waiters();
        }));
    }

    /// What is here is used until it ends, if there is no reply.
    async fn renew_all(&self, target: &Target, renewals: &[Renewal]) {
        let asked = self.now();
        let outcomes = self.outcomes(target, renewals.iter().map(Renewal::request)).await;
        let mut capabilities = self.capabilities.lock();
        for (renewal, outcome) in renewals.iter().zip(outcomes.unwrap_or_default()) {
            let capability = CapabilityOutcome::into_capability(outcome).ok();
            let given = capability.and_then(|capability| given(&capability, renewal.used(), asked));
            capabilities.renewed(renewal, given, self.now());
        }
    }
}
