//! Periodic sweep: drops expired promises, probes silent hosts, removes hosts that have been silent for long
//! (docs/protocol callback.md "5.4 Periodic").

use std::sync::{Arc, Weak};
use std::time::Duration;

use afs_rpc::EnvExt;

use super::Clients;
use super::messages::Route;
use crate::hosts::Host;

/// Time between sweeps.
const SWEEP_INTERVAL: Duration = Duration::from_secs(300);
/// Seconds of silence after which a host with promises is probed.
const SILENT_SECONDS: u64 = 15 * 60;
/// Seconds of silence after which a host is removed.
const FORGOTTEN_SECONDS: u64 = 2 * 3600;
/// Probes without an answer after which a host counts as unreachable. What changes is then kept for its next call, and it relies
/// on old versions until then: that must not be the work of two lost datagrams.
const PROBES_LOST: usize = 3;
/// Hosts probed at the same time.
const PROBES_MAX: usize = 32;

impl Clients {
    /// Sweeps every five minutes until the clients are dropped.
    pub fn start_sweeping(self: &Arc<Self>) {
        let (env, clients) = (self.env.clone(), Arc::downgrade(self));
        self.env.spawn(Box::pin(async move {
            loop {
                env.sleep(SWEEP_INTERVAL).await;
                let Some(clients) = Weak::upgrade(&clients) else { return };
                clients.sweep().await;
            }
        }));
    }

    /// One sweep.
    pub async fn sweep(self: &Arc<Self>) {
        let now = self.now();
        self.callbacks.expire(now);
        let silent: Vec<_> = self
            .hosts
            .all()
            .into_iter()
            .filter(|host| now.saturating_sub(host.last_call()) > SILENT_SECONDS)
            .collect();
        for some in silent.chunks(PROBES_MAX) {
            let checks: Vec<_> = some
                .iter()
                .map(|host| {
                    let (clients, host) = (self.clone(), host.clone());
                    self.env.spawn_with_result(async move { clients.check(&host, now).await })
                })
                .collect();
            for check in checks {
                // A task without a result ended with the runtime.
                let _ = check.await;
            }
        }
    }

    async fn check(self: &Arc<Self>, host: &Arc<Host>, now: u64) {
        if now.saturating_sub(host.last_call()) > FORGOTTEN_SECONDS {
            if !host.is_down() && self.callbacks.has_promises(host.id()) {
                // The host may be gone for good; the promises end here in any case.
                let _ = self.notify_reset(host).await;
            }
            self.hosts.remove(host);
        } else if !host.is_down() && self.callbacks.has_promises(host.id()) {
            self.probe(host).await;
        }
    }

    /// Marks a host down that does not answer, here or at another of its addresses.
    async fn probe(self: &Arc<Self>, host: &Arc<Host>) {
        for _ in 0..PROBES_LOST {
            if self.answers(&Route::to(host), host.identity()).await || self.reach(host).await {
                return;
            }
        }
        host.mark_down();
    }
}
