//! One call: attempts at the sites of a volume until the retry ladder ends.

use std::sync::Arc;

use afs_rpc::{CallError, EnvExt};
use afs_wire::rpc::Request;

use crate::calls::failure::Failure;
use crate::calls::retry::{Ladder, RetryLimits, Step};
use crate::calls::{CallContext, CallOutcome, Calls, Evidence, Target, WaitPolicy};
use crate::error::ErrorKind;
use crate::location::{Server, Volume};

impl Calls {
    /// Makes a plain call to a volume's sites.
    pub async fn call<R: Request + Clone>(
        &self,
        context: &CallContext,
        volume: &Arc<Volume>,
        request: R,
    ) -> CallOutcome<R::Reply>
    where
        R::Reply: Send,
    {
        self.on_sites(context, volume, R::NAME, |target| {
            let request = request.clone();
            async move { target.connection.call(&request).await }
        })
        .await
    }

    /// Makes attempts at a volume's sites until the retry ladder ends.
    pub async fn on_sites<T, F, Fut>(
        &self,
        context: &CallContext,
        volume: &Arc<Volume>,
        operation: &'static str,
        mut attempt: F,
    ) -> CallOutcome<T>
    where
        F: FnMut(Target) -> Fut + Send,
        Fut: Future<Output = std::result::Result<T, CallError>> + Send,
        T: Send,
    {
        let began = self.now();
        self.check_location(context, volume).await;
        let mut sites = volume.sites(began);
        let mut ladder = Ladder::new(self.retry_limits(), &view(&sites));
        let mut step = ladder.first();
        let mut failure = Failure::new(operation, volume, &sites);
        let mut maybe_executed = false;
        let mut silent = false;
        loop {
            step = match step {
                Step::Try { site, address } => {
                    let Some(target) = self.target_at(context, volume, &sites, (site, address)) else {
                        return CallOutcome {
                            result: Err(failure.of(ErrorKind::ServerUnreachable)),
                            maybe_executed,
                        };
                    };
                    let hedged = has_alternative(volume, &sites, site);
                    match self.attempt(&target, operation, hedged, &mut attempt).await {
                        Ok(answered) => {
                            self.measured_by(&target, &sites);
                            return CallOutcome { result: Ok(answered), maybe_executed };
                        }
                        // The token has expired; the server may still accept the same call without one.
                        Err((error, _)) if self.token_expired(&target, &error) => step,
                        Err((error, outcome)) => {
                            silent = error.is_silence();
                            maybe_executed |= silent;
                            failure.note(&target, &error);
                            if maybe_executed && context.wait == WaitPolicy::NoRetry {
                                return CallOutcome {
                                    result: Err(failure.of(ErrorKind::ServerUnreachable)),
                                    maybe_executed,
                                };
                            }
                            ladder.next(outcome, self.now().saturating_since(began))
                        }
                    }
                }
                Step::Pause(pause) => {
                    tracing::debug!(volume = %volume.id, operation, "waiting for a busy volume");
                    self.parts.env.sleep(self.with_jitter(pause)).await;
                    sites = volume.sites(self.now());
                    ladder.resumed(&view(&sites), self.now().saturating_since(began))
                }
                Step::AwaitServer(most) => match self.await_reachable(context, volume, most).await {
                    Ok(true) => {
                        sites = volume.sites(self.now());
                        ladder.returned(&view(&sites), self.now().saturating_since(began))
                    }
                    Ok(false) => ladder.abandoned(),
                    Err(kind) => Step::Fail(kind),
                },
                Step::Relocate => {
                    let changed = self.relocate_within(context, volume, silent).await;
                    sites = volume.sites(self.now());
                    ladder.relocated(&view(&sites), changed, self.now().saturating_since(began))
                }
                Step::Reply(code) => {
                    return CallOutcome { result: Err(failure.reply(code)), maybe_executed };
                }
                Step::Fail(kind) => return CallOutcome { result: Err(failure.of(kind)), maybe_executed },
            };
        }
    }

    fn retry_limits(&self) -> RetryLimits {
        RetryLimits {
            total: self.limits.operation_max,
            offline: self.limits.offline_max,
            pause: self.limits.busy_pause,
            pause_max: self.limits.busy_pause_max,
        }
    }

    fn target_at(
        &self,
        context: &CallContext,
        volume: &Volume,
        sites: &[Arc<Server>],
        (site, address): (usize, usize),
    ) -> Option<Target> {
        let server = sites.get(site)?;
        let address = server.addresses().get(address)?.clone();
        let credentials = self.parts.identity.credentials(context.user, volume.cell);
        let connection = address.connection(&self.parts.rx, &credentials);
        let (server, evidence) = (server.clone(), Evidence::default());
        Some(Target { server, address, connection, token: credentials.id, evidence })
    }

    /// Records the round-trip time of the site that replied, if there are several.
    fn measured_by(&self, target: &Target, sites: &[Arc<Server>]) {
        if sites.len() > 1
            && let Some(smoothed) = self.parts.rx.round_trip(target.address.peer)
        {
            target.address.known_round_trip(smoothed);
        }
    }
}

/// For each site: which of its addresses are unreachable.
fn view(sites: &[Arc<Server>]) -> Vec<Vec<bool>> {
    let site =
        |server: &Arc<Server>| server.addresses().iter().map(|address| address.is_unreachable()).collect();
    sites.iter().map(site).collect()
}

/// True if a call to one site of a volume may be abandoned for another: the volume is read-only, so that nothing is
/// changed twice, and another site is reachable.
fn has_alternative(volume: &Volume, sites: &[Arc<Server>], at: usize) -> bool {
    let mut others = sites.iter().enumerate().filter(|(index, _)| *index != at);
    !volume.is_writable() && others.any(|(_, server)| !server.is_unreachable())
}
