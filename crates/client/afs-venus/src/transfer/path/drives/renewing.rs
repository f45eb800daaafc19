//! RenewLayouts: capabilities of layouts are asked for again, all of a user's that are in use in one call.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_datapath::capability::Generation;
use afs_rpc::{CallError, EnvExt};
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, LAYOUT_RENEWALS_MAX, LayoutRenewal, LayoutRenewals};
use afs_wire::rpc::Request;
use afs_wire::xdr::Fixed;

use super::super::capabilities::{Given, Use};
use super::super::grants::given;
use super::super::opening::CALL_MAX;
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
            let renewals = self.sites.lock().renewals(asked, now, LAYOUT_RENEWALS_MAX);
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
        self.common.counters.call(fs::RenewLayouts::NAME);
        let (asked, reset) = (self.now(), self.server.reset.get());
        let wanted = renewals
            .iter()
            .map(|site| LayoutRenewal { fid: site.fid, drive: Fixed(site.offer.drive.0.to_be_bytes()) });
        let request = fs::RenewLayouts { wanted: LayoutRenewals::first_of(wanted) };
        match self.common.env.timeout(CALL_MAX, target.connection.call(&request)).await {
            Ok(Ok(reply)) => {
                let mut outcomes = reply.outcomes.into_vec().into_iter();
                let of_next = |_| {
                    let renewed = outcomes.next()?;
                    let reply = renewed.outcome.into_reply().ok()?;
                    let number = self.given.fetch_add(1, Ordering::Relaxed);
                    let given = given(&reply, Use::Read, asked)?;
                    Some((Given { number, ..given }, Generation(renewed.valid_from)))
                };
                Some(renewals.iter().map(of_next).collect())
            }
            Ok(Err(CallError::Abort(AbortCode::RXGEN_OPCODE))) => {
                self.server.no_calls_of_ours.note(self.now(), reset);
                None
            }
            _ => None,
        }
    }
}
