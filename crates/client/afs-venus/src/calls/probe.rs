//! Probes: the first contact with a server at an address, and checks whether an address is reachable.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_rpc::future::join_all;
use afs_rpc::{CallError, Connection};
use afs_wire::fs;
use afs_wire::rpc::Request;

use crate::calls::attempt::{outcome, outcome_of};
use crate::calls::retry::marks_down;
use crate::calls::{Calls, Target};
use crate::location::Server;

impl Calls {
    /// The first call to a server at an address. In reply the server asks for this client's identity and resets earlier
    /// promises; with a separate call this cannot collide with the call that brings the first promise
    /// (docs/protocol/callback.md "5.1 First contact"). It also measures the round-trip time.
    pub(super) async fn first_contact(&self, target: &Target) -> std::result::Result<(), CallError> {
        if target.address.contacted.load(Ordering::SeqCst) {
            return Ok(());
        }
        let _guard = target.address.contacting.lock().await;
        if target.address.contacted.load(Ordering::SeqCst) {
            return Ok(());
        }
        let reply = self.ask(target, target.address.anonymous(), &fs::GetCapabilities {}).await?;
        let word = reply.and_then(|reply| reply.capabilities.first().copied()).unwrap_or_default();
        let fine = word & fs::capability::FINE_TIMES != 0;
        target.server.has_fine_times.store(fine, Ordering::SeqCst);
        target.address.contacted.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Asks an address something that costs a server no work. Any reply counts, also an abort, which is `None`.
    async fn ask<R: Request>(
        &self,
        target: &Target,
        through: Connection,
        request: &R,
    ) -> std::result::Result<Option<R::Reply>, CallError> {
        let started = self.now();
        self.parts.counters.call(R::NAME);
        let reply = match through.call(request).await {
            Err(error) if marks_down(outcome_of(&error)) || !matches!(error, CallError::Abort(_)) => {
                return Err(error);
            }
            reply => reply.ok(),
        };
        target.address.measured(self.now().saturating_since(started));
        Ok(reply)
    }

    /// Probes an address, which tells the time of its server.
    pub(super) async fn probe(&self, target: &Target) -> std::result::Result<(), CallError> {
        let reply = self.ask(target, target.address.probing(), &fs::GetTime {}).await?;
        target.server.clock.note(reply.map(|reply| reply.seconds), self.parts.env.wall());
        Ok(())
    }

    /// Probes an address and records the outcome.
    pub(super) async fn probe_and_note(&self, target: &Target) {
        let begun = self.now();
        let done = self.probe(target).await;
        let failed = done.err().map(|error| {
            let outcome = outcome(target, &error, begun);
            (error, outcome)
        });
        self.note_outcome(target, begun, failed.as_ref());
    }

    /// The same in a background task.
    pub(super) fn probe_soon(&self, target: Target) {
        let Some(me) = self.me.upgrade() else { return };
        self.parts.env.spawn(Box::pin(async move { me.probe_and_note(&target).await }));
    }

    /// Probes servers that have been idle for long, and those whose time is not known. Unreachable ones are watched.
    pub fn probe_idle(&self) {
        let now = self.now();
        for server in self.parts.location.servers().all() {
            for address in server.addresses() {
                let is_quiet =
                    address.absence.idle_for(now).is_some_and(|quiet| quiet >= self.limits.probe_up);
                let is_unknown = address.contacted.load(Ordering::SeqCst) && server.clock.is_unknown();
                if (is_quiet || is_unknown) && !address.is_unreachable() {
                    self.probe_soon(Target::anonymous(&server, address));
                }
            }
        }
    }

    /// Probes the unreachable addresses of some servers, each once.
    pub async fn probe_unreachable(&self, servers: impl IntoIterator<Item = Arc<Server>>) {
        let mut silent = Vec::new();
        for server in servers {
            for address in server.addresses().into_iter().filter(|address| address.is_unreachable()) {
                if !silent.iter().any(|target: &Target| Arc::ptr_eq(&target.address, &address)) {
                    silent.push(Target::anonymous(&server, address));
                }
            }
        }
        join_all(silent.iter().map(|target| self.probe_and_note(target))).await;
    }

    /// A target at an address of a server that is not known to be unreachable.
    pub fn reachable_target(&self, server: &Arc<Server>) -> Option<Target> {
        let address = server.addresses().into_iter().find(|address| !address.is_unreachable())?;
        Some(Target::anonymous(server, address))
    }
}
