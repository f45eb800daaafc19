//! Hedging: a call is abandoned for another site if its server does not reply to a probe.

use std::pin::pin;
use std::time::Duration;

use afs_rpc::future::{Either, select};
use afs_rpc::{CallError, EnvExt};

use crate::calls::{Calls, Target};

/// Longest time before a server that has alternatives is probed, and longest time for the probe's reply.
const HEDGE_AFTER_MAX: Duration = Duration::from_secs(2);
const PROBE_TIMEOUT_MAX: Duration = Duration::from_secs(4);

impl Calls {
    /// Makes a call that has alternatives: if it takes long and the server does not reply to a probe, the call is
    /// abandoned long before the server's dead time.
    pub(super) async fn hedged<T: Send>(
        &self,
        target: &Target,
        work: impl Future<Output = std::result::Result<T, CallError>> + Send,
    ) -> std::result::Result<T, CallError> {
        let round_trip = target.address.round_trip();
        let probe_timeout = (round_trip * 16).min(PROBE_TIMEOUT_MAX).max(self.limits.hedge_probe_timeout);
        let mut wait = (round_trip * 8).min(HEDGE_AFTER_MAX).max(self.limits.hedge_after);
        let mut work = pin!(work);
        loop {
            if let Either::Left(done) = select(work.as_mut(), self.parts.env.sleep(wait)).await {
                return done;
            }
            let sign = self.parts.env.timeout(probe_timeout, self.probe(target));
            match select(work.as_mut(), sign).await {
                Either::Left(done) => return done,
                Either::Right(Ok(Ok(()))) => wait = (wait * 2).min(HEDGE_AFTER_MAX),
                Either::Right(Ok(Err(error))) => return Err(error),
                Either::Right(Err(_)) => return Err(CallError::Unreachable { peer: target.address.peer }),
            }
        }
    }
}
