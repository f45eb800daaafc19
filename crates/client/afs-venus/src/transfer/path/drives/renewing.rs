//! Capabilities of layouts are asked for again, all of a user's that are in use in one call.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_datapath::capability::Generation;
use afs_rpc::CallError;
use afs_wire::error::AbortCode;
use afs_wire::fs::{CAPABILITIES_WANTED_MAX, CapabilityRequest};
use afs_wire::xdr::Fixed;

use super::super::capabilities::{Given, Use};
use super::super::grants::given;
use super::layout::Layout;
use super::server_drives::ServerDrives;
use super::sites::{Site, Standing};
use crate::calls::Target;

impl ServerDrives {
    /// How a layout stands. What is due of it is asked for again in the background, together with what else is in use.
    pub(super) fn stand(self: &Arc<Self>, target: &Target, layout: &Layout) -> Standing {
        let now = self.now();
        if layout.is_over(now) {
            return Standing::Void;
        }
        let mut worst = Standing::Good;
        let mut asked = Vec::new();
        for (site, oldest) in layout.sites() {
            let standing = site.stand(*oldest, now);
            if matches!(standing, Standing::Due | Standing::Ended) {
                asked.push(site.clone());
            }
            worst = worst.max(standing);
        }
        if !asked.is_empty() {
            let renewals = self.sites.lock().renewals(asked, now, CAPABILITIES_WANTED_MAX);
            self.renew(target, renewals);
        }
        worst
    }

    fn renew(self: &Arc<Self>, target: &Target, renewals: Vec<Arc<Site>>) {
        let (me, target) = (self.clone(), target.clone());
        self.common.env.spawn(Box::pin(async move {
            match me.renew_all(&target, &renewals).await {
                Some(given) => renewals.iter().zip(given).for_each(|(site, given)| site.renewed(given)),
                None => renewals.iter().for_each(|site| site.not_asked(me.now())),
            }
            me.changed.notify_waiters();
        }));
    }

    /// What the file server gives for each of them; `None` if it gives none by this call, or does not reply.
    async fn renew_all(
        &self,
        target: &Target,
        renewals: &[Arc<Site>],
    ) -> Option<Vec<Option<(Given, Generation)>>> {
        let (asked, reset) = (self.now(), self.server.reset.get());
        let request = |site: &Arc<Site>| CapabilityRequest {
            fid: site.fid,
            access: Use::Read.wanted(),
            drive: Fixed(site.offer.drive.0.to_be_bytes()),
        };
        let outcomes = self.common.get_capabilities(target, renewals.iter().map(request)).await;
        if matches!(outcomes, Err(CallError::Abort(AbortCode::RXGEN_OPCODE))) {
            self.server.no_calls_of_ours.note(self.now(), reset);
        }
        let mut outcomes = outcomes.ok()?.into_iter();
        let of_next = |_| {
            let outcome = outcomes.next()?;
            let valid_from = Generation(outcome.valid_from);
            let given = given(&outcome.into_capability().ok()?, Use::Read, asked)?;
            let number = self.given.fetch_add(1, Ordering::Relaxed);
            Some((Given { number, ..given }, valid_from))
        };
        Some(renewals.iter().map(of_next).collect())
    }
}
