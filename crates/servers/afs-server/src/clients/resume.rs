//! Restoring a host to the ready state before its call runs (docs/protocol callback.md "8. Delayed callbacks
//! — state machine per host").

use std::net::SocketAddr;
use std::sync::Arc;

use afs_rpc::EnvExt;
use afs_wire::error::AbortCode;
use afs_wire::fs::FIDS_MAX;
use afs_wire::ids::Fid;

use super::Clients;
use super::messages::Route;
use crate::callbacks::Callbacks;
use crate::hosts::{Host, HostId};

/// Delayed breaks that are being sent to a host. Dropped before the reply, they are delayed again.
struct BreaksInFlight<'a> {
    callbacks: &'a Callbacks,
    host: HostId,
    fids: Vec<Fid>,
    delivered: bool,
}

impl Drop for BreaksInFlight<'_> {
    fn drop(&mut self) {
        for fid in &self.fids {
            if self.delivered {
                self.callbacks.broken(*fid, self.host);
            } else {
                self.callbacks.delay(*fid, self.host);
            }
        }
    }
}

impl Clients {
    /// Resets a host that was not told of this server's start, or delivers its delayed breaks.
    ///
    /// On failure the host loses all its promises and is reset at its next call; this one ends with -1.
    pub(super) async fn resume(self: &Arc<Self>, host: &Arc<Host>) -> Result<(), AbortCode> {
        let _turn = host.preparing.lock().await;
        if host.is_ready() {
            return Ok(());
        }
        if self.deliver(host).await || (self.reach(host).await && self.deliver(host).await) {
            return Ok(());
        }
        tracing::info!(host = %host.destination(), "a client cannot be told what changed; its promises are void");
        host.with(|state| state.reset = false);
        host.mark_down();
        self.callbacks.forget_host(host.id());
        Err(AbortCode::RX_CALL_DEAD)
    }

    async fn deliver(&self, host: &Host) -> bool {
        if !host.with(|state| state.reset) {
            self.callbacks.forget_host(host.id());
            if self.notify_reset(host).await.is_err() {
                return false;
            }
            host.with(|state| state.reset = true);
        }
        loop {
            let mut in_flight = self.take_delayed_or_mark_up(host);
            if in_flight.fids.is_empty() {
                return true;
            }
            in_flight.delivered =
                self.notify_breaks(host, &in_flight.fids, self.timeouts.break_reply).await.is_ok();
            if !in_flight.delivered {
                return false;
            }
        }
    }

    /// The next delayed breaks; when there are none the host is marked up. Both under the host's lock: a
    /// break that finds the host down is recorded under the same lock, so none is lost in between.
    fn take_delayed_or_mark_up<'a>(&'a self, host: &Host) -> BreaksInFlight<'a> {
        host.with(|state| {
            let fids = self.callbacks.take_delayed(host.id(), FIDS_MAX);
            state.down = !fids.is_empty();
            BreaksInFlight { callbacks: &self.callbacks, host: host.id(), fids, delivered: false }
        })
    }

    /// Probes a host at its other addresses, all at once; callbacks go to the first that replies from now on.
    pub(super) async fn reach(self: &Arc<Self>, host: &Arc<Host>) -> bool {
        let route = Route::to(host);
        let (tried, others) = host.with(|state| {
            let others = state.peers.iter().chain(&state.alternates).copied();
            let tried = state.destination;
            (tried, others.filter(|other| *other != tried).collect::<Vec<SocketAddr>>())
        });
        let probes: Vec<_> = others
            .into_iter()
            .map(|other| {
                let (clients, route, identity) = (self.clone(), route.at(other), host.identity());
                let probe = async move { clients.answers(&route, identity).await };
                (other, self.env.spawn_with_result(probe))
            })
            .collect();
        let mut found = None;
        for (other, probe) in probes {
            if probe.await.unwrap_or(false) && found.is_none() {
                found = Some(other);
            }
        }
        if let Some(other) = found {
            tracing::info!(host = %tried, at = %other, "a client answers at another of its addresses");
            let is_safe = host.with(|state| {
                state.destination = other;
                state.callback.is_some()
            });
            // An impostor may reply there in its name: the client's address is taken from its next call.
            if !is_safe {
                self.hosts.disconnect(host, tried);
            }
        }
        found.is_some()
    }
}
