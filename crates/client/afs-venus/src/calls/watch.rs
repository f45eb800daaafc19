//! Watch of an unreachable address: one task probes it until it replies.
//!
//! A probe lasts as long as Rx believes that its reply may come: a slow server is not an unreachable one. Its packets become
//! rare meanwhile, and a server that returns is to be noticed at once: as long as it has no reply, fresh probes are sent
//! beside it, each of which lasts until the next. So there are two in progress at most, however many programs wait.

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::future::{Either, select};

use crate::calls::{Calls, Target};
use crate::location::{Absence, Cell, LocationServer};

/// First pause before an unreachable server is probed.
const PROBE_FIRST: Duration = Duration::from_millis(250);

/// A server at an address that is watched.
#[derive(Clone)]
pub(super) enum Watched {
    File(Target),
    Location(Arc<Cell>, Arc<LocationServer>),
}

impl Watched {
    fn absence(&self) -> &Absence {
        match self {
            Watched::File(target) => &target.address.absence,
            Watched::Location(_, server) => &server.absence,
        }
    }

    /// True if the address still belongs to the server, or the server to the cell.
    fn is_known(&self) -> bool {
        match self {
            Watched::File(target) => {
                target.server.addresses().iter().any(|known| Arc::ptr_eq(known, &target.address))
            }
            Watched::Location(cell, server) => cell.has(server),
        }
    }

    fn is_away(&self) -> bool {
        self.is_known() && self.absence().is_unreachable()
    }
}

impl Calls {
    /// Probes an unreachable address until it replies.
    pub(super) fn watch(&self, watched: Watched) {
        if watched.absence().claim_watch() {
            self.parts.env.spawn(Box::pin(watch_until_reachable(self.me.clone(), watched)));
        }
    }

    /// One probe, and fresh ones beside it until it has ended or one of them has a reply.
    async fn probe_watched(&self, watched: &Watched) {
        let mut probe = pin!(self.probe_once(watched));
        loop {
            let pause = self.with_jitter(self.limits.probe_down);
            match select(probe.as_mut(), self.parts.env.sleep(pause)).await {
                Either::Right(()) if watched.is_away() => self.probe_beside(watched.clone(), pause),
                _ => return,
            }
        }
    }

    fn probe_beside(&self, watched: Watched, limit: Duration) {
        let Some(me) = self.me.upgrade() else { return };
        self.parts.env.spawn(Box::pin(async move {
            me.parts.env.timeout(limit, me.probe_once(&watched)).await.ok();
        }));
    }

    async fn probe_once(&self, watched: &Watched) {
        match watched {
            Watched::File(target) => self.probe_and_note(target).await,
            Watched::Location(_, server) => self.probe_location(server).await,
        }
    }

    async fn probe_location(&self, server: &LocationServer) {
        self.parts.counters.call("ProbeServer");
        if server.probe().await.is_ok() && server.absence.answered(self.now()) {
            tracing::info!(server = %server.peer, "location server is back up");
            self.reachable_again.notify_waiters();
        }
    }
}

/// Probes until the address replies or no longer belongs to the server. Holds no reference while it sleeps.
async fn watch_until_reachable(calls: Weak<Calls>, watched: Watched) {
    let mut pause = PROBE_FIRST;
    loop {
        let Some(me) = calls.upgrade() else { return };
        let (ended, sleep) = (me.ended.clone().notified_owned(), me.parts.env.sleep(me.with_jitter(pause)));
        pause = (pause * 2).min(me.limits.probe_down);
        drop(me);
        select(ended, sleep).await;
        let Some(me) = calls.upgrade().filter(|me| !me.is_closing()) else { return };
        if watched.is_away() {
            me.probe_watched(&watched).await;
        }
        if watched.is_away() {
            continue;
        }
        watched.absence().end_watch();
        if !watched.is_known() || !watched.absence().claim_watch() {
            return;
        }
    }
}
