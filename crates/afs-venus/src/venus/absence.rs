//! Servers that do not answer any more: who waits for them, and who asks whether they are back.
//!
//! One task asks a server that fell silent, often at first; programs wait for what it hears, and do not ask themselves. So an
//! ordinary restart of a server is a pause and no error, and costs as many packets for a thousand programs as for one. A server that
//! stays away longer than that gives errors at once (docs/decisions/2026-11-23-servers-away.md).

use std::sync::{Arc, Weak};
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::future::select;

use crate::error::{ErrorKind, Result, VenusError};
use crate::location::{Cell, Volume};
use crate::venus::calls::Target;
use crate::venus::manner::Manner;
use crate::venus::{Shared, Venus};

/// First pause before a server that fell silent is asked whether it is back.
const PROBE_FIRST: Duration = Duration::from_millis(500);
/// A process that is killed waits no longer than this.
const KILLED_WITHIN: Duration = Duration::from_secs(1);
/// Pause before a location service that is away is asked again.
const LOCATION_PAUSE: Duration = Duration::from_secs(1);

impl Venus {
    /// The same, waiting for no server that is away.
    pub(super) fn hasty(&self) -> Venus {
        Venus { manner: Manner::Hasty, ..self.again() }
    }

    /// The same, for a call that must not be made twice.
    pub(super) fn once(&self) -> Venus {
        Venus { manner: Manner::Once, ..self.again() }
    }

    /// The same, for a process that may be killed while it waits for a server.
    pub fn asked_by(&self, pid: u32) -> Venus {
        Venus { asker: pid, ..self.again() }
    }

    /// Says how to learn whether a process is being killed: one that waits for a server that is away waits no longer then.
    /// Counts once.
    pub fn heed_kills(&self, killed: fn(u32) -> bool) {
        self.killed.set(killed).ok();
    }

    /// Waits until a site of the volume answers again, or the volume is elsewhere. `false` if that did not happen in time; an
    /// error if the process that waits is being killed.
    pub(super) async fn await_return(
        &self,
        volume: &Arc<Volume>,
        most: Duration,
    ) -> std::result::Result<bool, ErrorKind> {
        let until = self.now() + most;
        loop {
            let heard = self.heard.notified();
            let now = self.now();
            let sites = volume.sites(now);
            if sites.iter().any(|server| !server.is_silent()) {
                return Ok(true);
            }
            let worth = sites.iter().map(|server| server.worth_waiting(now, self.limits.absence_max)).max();
            let left = worth.unwrap_or_default().min(until.saturating_since(now));
            if self.manner != Manner::Patient || left.is_zero() || self.is_closing() {
                return Ok(false);
            }
            if self.is_killed() {
                return Err(ErrorKind::Interrupted);
            }
            tracing::debug!(volume = %volume.id, "waiting for a server that does not answer");
            select(heard, self.env.sleep(left.min(KILLED_WITHIN))).await;
        }
    }

    fn is_killed(&self) -> bool {
        self.asker != 0 && self.killed.get().is_some_and(|killed| killed(self.asker))
    }

    /// Asks a cell's location service, and again where it is away but was there until just now.
    pub(super) async fn ask_patiently<T, Fut>(&self, cell: &Cell, ask: impl Fn() -> Fut + Send) -> Result<T>
    where
        Fut: Future<Output = Result<T>> + Send,
        T: Send,
    {
        loop {
            let answer = ask().await;
            let is_away = answer.as_ref().is_err_and(|error| error.kind == ErrorKind::ServerAway);
            let is_worth = || !cell.worth_waiting(self.now(), self.limits.absence_max).is_zero();
            if !is_away || self.manner != Manner::Patient || self.is_closing() || !is_worth() {
                return answer;
            }
            if self.is_killed() {
                return Err(VenusError::new(ErrorKind::Interrupted, "volume"));
            }
            self.env.sleep(self.spread(LOCATION_PAUSE)).await;
        }
    }

    /// Has an address that fell silent asked again until it answers.
    pub(super) fn watch(&self, target: &Target) {
        if target.address.claim_watch() {
            let target = Target::anonymous(&target.server, target.address.clone());
            let watch = Venus::watch_return(Arc::downgrade(&self.shared), target);
            self.env.spawn(Box::pin(watch));
        }
    }

    /// Asks, ever less often, until the address answers or is one of the server's no more. Holds no reference while it sleeps.
    async fn watch_return(shared: Weak<Shared>, target: Target) {
        let upgraded =
            || Some(Venus { shared: shared.upgrade()?, who: None, manner: Manner::Hasty, asker: 0 });
        let mut pause = PROBE_FIRST;
        loop {
            let Some(venus) = upgraded() else { return };
            let (wake, sleep) = (venus.wake.notified(), venus.env.sleep(venus.spread(pause)));
            pause = (pause * 2).min(venus.limits.probe_down);
            drop(venus);
            select(wake, sleep).await;
            let Some(venus) = upgraded().filter(|venus| !venus.is_closing()) else { return };
            let is_known = target.server.addresses().iter().any(|known| Arc::ptr_eq(known, &target.address));
            if is_known && target.address.is_silent() {
                venus.probe_and_judge(&target).await;
            }
            if is_known && target.address.is_silent() {
                continue;
            }
            target.address.end_watch();
            if !is_known || !target.address.claim_watch() {
                return;
            }
        }
    }
}
