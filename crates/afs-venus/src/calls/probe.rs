//! Signs of life: the first call to a server at an address, and asking whether it is there.

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
    /// The first call to a server at an address. It makes the server ask who we are and tell us to forget whatever it
    /// had promised before, so that the call that brings the first promise does not run into that
    /// (docs/protocol/callback.md "5.1 First contact"). It also measures the way.
    pub(super) async fn first_contact(&self, target: &Target) -> std::result::Result<(), CallError> {
        if target.address.contacted.load(Ordering::SeqCst) {
            return Ok(());
        }
        let _guard = target.address.contacting.lock().await;
        if target.address.contacted.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.probe(target, target.address.anonymous()).await?;
        target.address.contacted.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Asks for a sign of life. Any answer is one.
    pub(super) async fn probe(
        &self,
        target: &Target,
        through: Connection,
    ) -> std::result::Result<(), CallError> {
        let started = self.now();
        self.parts.counters.call(fs::GetCapabilities::NAME);
        match through.call(&fs::GetCapabilities {}).await {
            Err(error) if marks_down(outcome_of(&error)) || !matches!(error, CallError::Abort(_)) => {
                Err(error)
            }
            _ => {
                target.address.measured(self.now().saturating_since(started));
                Ok(())
            }
        }
    }

    /// A probe whose outcome is noted.
    pub(super) async fn probe_and_note(&self, target: &Target) {
        let begun = self.now();
        let done = self.probe(target, target.address.probing()).await;
        let failed = done.err().map(|error| {
            let outcome = outcome(target, &error, begun);
            (error, outcome)
        });
        self.note_outcome(target, begun, failed.as_ref());
    }

    /// The same, in a task of its own.
    pub(super) fn probe_soon(&self, target: Target) {
        let Some(me) = self.me.upgrade() else { return };
        self.parts.env.spawn(Box::pin(async move { me.probe_and_note(&target).await }));
    }

    /// Servers that we have not heard from for long are asked whether they are still there. Those that are away are watched.
    pub fn probe_idle(&self) {
        let now = self.now();
        for server in self.parts.location.servers().all() {
            for address in server.addresses() {
                let is_quiet = address.idle_for(now).is_some_and(|quiet| quiet >= self.limits.probe_up);
                if is_quiet && !address.is_unreachable() {
                    self.probe_soon(Target::anonymous(&server, address));
                }
            }
        }
    }

    /// Those of some servers that did not answer when last called are asked, each address once, whether they are back.
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

    /// An address of a server that answered when last asked.
    pub fn reachable_target(&self, server: &Arc<Server>) -> Option<Target> {
        let address = server.addresses().into_iter().find(|address| !address.is_unreachable())?;
        Some(Target::anonymous(server, address))
    }
}
