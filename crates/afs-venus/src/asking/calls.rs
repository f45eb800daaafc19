//! One call: attempts at the sites of a volume, until the ladder says that one was the last.

use std::sync::Arc;

use afs_rpc::{CallError, EnvExt};
use afs_wire::rpc::Request;

use crate::asking::failure::Failure;
use crate::asking::retry::{Ladder, Patience, Step};
use crate::asking::{Asker, Asking, Manner, Target, Tried};
use crate::error::ErrorKind;
use crate::location::{Server, Volume};

impl Asking {
    /// Makes a plain call to a volume's sites.
    pub async fn call<R: Request + Clone>(
        &self,
        asker: &Asker,
        volume: &Arc<Volume>,
        request: R,
    ) -> Tried<R::Reply>
    where
        R::Reply: Send,
    {
        self.on_sites(asker, volume, R::NAME, |target| {
            let request = request.clone();
            async move { target.connection.call(&request).await }
        })
        .await
    }

    /// Makes attempts at a volume's sites until the ladder says that one was the last.
    pub async fn on_sites<T, F, Fut>(
        &self,
        asker: &Asker,
        volume: &Arc<Volume>,
        operation: &'static str,
        mut attempt: F,
    ) -> Tried<T>
    where
        F: FnMut(Target) -> Fut + Send,
        Fut: Future<Output = std::result::Result<T, CallError>> + Send,
        T: Send,
    {
        let began = self.now();
        self.settle_doubt(asker, volume).await;
        let mut sites = volume.sites(began);
        let mut ladder = Ladder::new(self.patience(), &view(&sites));
        let mut step = ladder.first();
        let mut failure = Failure::new(operation, volume, &sites);
        let mut unsure = false;
        let mut silent = false;
        loop {
            step = match step {
                Step::Try { site, address } => {
                    let Some(target) = self.target_at(asker, volume, &sites, (site, address)) else {
                        return Tried { result: Err(failure.of(ErrorKind::ServerAway)), unsure };
                    };
                    let hedged = has_alternative(volume, &sites, site);
                    match self.attempt(&target, operation, hedged, &mut attempt).await {
                        Ok(answered) => {
                            self.measured_by(&target, &sites);
                            return Tried { result: Ok(answered), unsure };
                        }
                        // The token has expired; the server may still answer the same call without one.
                        Err((error, _)) if self.was_expired(&target, &error) => step,
                        Err((error, outcome)) => {
                            silent = error.is_silence();
                            unsure |= silent;
                            failure.note(&target, &error);
                            if unsure && asker.manner == Manner::Once {
                                return Tried { result: Err(failure.of(ErrorKind::ServerAway)), unsure };
                            }
                            ladder.next(outcome, self.now().saturating_since(began))
                        }
                    }
                }
                Step::Pause(pause) => {
                    tracing::debug!(volume = %volume.id, operation, "waiting for a busy volume");
                    self.parts.env.sleep(self.spread(pause)).await;
                    sites = volume.sites(self.now());
                    ladder.resumed(&view(&sites), self.now().saturating_since(began))
                }
                Step::Await(most) => match self.await_return(asker, volume, most).await {
                    Ok(true) => {
                        sites = volume.sites(self.now());
                        ladder.returned(&view(&sites), self.now().saturating_since(began))
                    }
                    Ok(false) => ladder.abandoned(),
                    Err(kind) => Step::Fail(kind),
                },
                Step::Relocate => {
                    let changed = self.relocate_within(asker, volume, silent).await;
                    sites = volume.sites(self.now());
                    ladder.relocated(&view(&sites), changed, self.now().saturating_since(began))
                }
                Step::Answer(code) => {
                    return Tried { result: Err(failure.answer(code)), unsure };
                }
                Step::Fail(kind) => return Tried { result: Err(failure.of(kind)), unsure },
            };
        }
    }

    fn patience(&self) -> Patience {
        Patience {
            total: self.limits.operation_max,
            offline: self.limits.offline_max,
            pause: self.limits.busy_pause,
            pause_max: self.limits.busy_pause_max,
        }
    }

    fn target_at(
        &self,
        asker: &Asker,
        volume: &Volume,
        sites: &[Arc<Server>],
        (site, address): (usize, usize),
    ) -> Option<Target> {
        let server = sites.get(site)?;
        let address = server.addresses().get(address)?.clone();
        let proof = self.parts.identity.proof(asker.who, volume.cell);
        let connection = address.connection(&self.parts.rx, &proof);
        Some(Target { server: server.clone(), address, connection, token: proof.id })
    }

    /// Of several sites, how near the one is that answered.
    fn measured_by(&self, target: &Target, sites: &[Arc<Server>]) {
        if sites.len() > 1
            && let Some(smoothed) = self.parts.rx.round_trip(target.address.peer)
        {
            target.address.known_round_trip(smoothed);
        }
    }
}

/// For each site, which of its addresses to pass by.
fn view(sites: &[Arc<Server>]) -> Vec<Vec<bool>> {
    let site = |server: &Arc<Server>| server.addresses().iter().map(|address| address.is_silent()).collect();
    sites.iter().map(site).collect()
}

/// Whether a call to one site of a volume may be given up for another: nothing can be changed twice, and somebody else is there.
fn has_alternative(volume: &Volume, sites: &[Arc<Server>], at: usize) -> bool {
    let mut others = sites.iter().enumerate().filter(|(index, _)| *index != at);
    !volume.is_writable() && others.any(|(_, server)| !server.is_silent())
}
