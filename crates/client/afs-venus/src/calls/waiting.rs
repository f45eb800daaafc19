//! Waiting for unreachable servers.
//!
//! One task probes each unreachable address, frequently at first; programs wait for the result of that task and send no
//! probes themselves. An ordinary restart of a server therefore appears as a pause, not an error, and costs the same
//! number of packets for any number of programs. A server that stays unreachable for longer gives errors at once
//! (docs/decisions/2026-11-23-servers-away.md).

use std::sync::Arc;
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::future::select;

use crate::calls::watch::Watched;
use crate::calls::{CallContext, Calls, WaitPolicy};
use crate::error::{ErrorKind, Result, VenusError};
use crate::location::{Cell, Volume};

/// A waiting process that is being killed stops waiting within this time.
const KILLED_WITHIN: Duration = Duration::from_secs(1);
/// Pause before an unreachable location service is queried again.
const LOCATION_PAUSE: Duration = Duration::from_secs(1);

impl Calls {
    /// Sets the function that tells whether a process is being killed; such a process stops waiting for unreachable
    /// servers. Only the first call has an effect.
    pub fn set_kill_check(&self, killed: fn(u32) -> bool) {
        self.killed.set(killed).ok();
    }

    /// Waits until a site of the volume is reachable again, or the volume is found elsewhere. `false` if neither
    /// happened in time; an error if the waiting process is being killed.
    pub(super) async fn await_reachable(
        &self,
        context: &CallContext,
        volume: &Arc<Volume>,
        most: Duration,
    ) -> std::result::Result<bool, ErrorKind> {
        let until = self.now() + most;
        loop {
            let heard = self.reachable_again.notified();
            let now = self.now();
            let sites = volume.sites(now);
            if sites.iter().any(|server| !server.is_unreachable()) {
                return Ok(true);
            }
            let worth = sites.iter().map(|server| server.remaining_wait(now, self.limits.server_wait)).max();
            let left = worth.unwrap_or_default().min(until.saturating_since(now));
            if context.wait != WaitPolicy::Wait || left.is_zero() || self.is_closing() {
                return Ok(false);
            }
            if self.is_killed(context) {
                return Err(ErrorKind::Interrupted);
            }
            tracing::debug!(volume = %volume.id, "waiting for a server that does not answer");
            select(heard, self.parts.env.sleep(left.min(KILLED_WITHIN))).await;
        }
    }

    fn is_killed(&self, context: &CallContext) -> bool {
        context.process != 0 && self.killed.get().is_some_and(|killed| killed(context.process))
    }

    /// Queries a cell's location service, and retries while it is unreachable but was reachable until recently. While it
    /// replies that it cannot serve, as a database without a quorum, it is asked for as long.
    pub(super) async fn query_with_wait<T, Fut>(
        &self,
        context: &CallContext,
        cell: &Arc<Cell>,
        ask: impl Fn() -> Fut + Send,
    ) -> Result<T>
    where
        Fut: Future<Output = Result<T>> + Send,
        T: Send,
    {
        let most = self.limits.server_wait;
        let until = self.now() + most;
        loop {
            let heard = self.reachable_again.notified();
            let answer = ask().await;
            for server in cell.unreachable() {
                self.watch(Watched::Location(cell.clone(), server));
            }
            let left = match &answer {
                Err(error) if error.kind != ErrorKind::ServerUnreachable => Duration::ZERO,
                Err(error) if error.code.is_some() => until.saturating_since(self.now()),
                Err(_) => cell.remaining_wait(self.now(), most),
                Ok(_) => Duration::ZERO,
            };
            if left.is_zero() || context.wait != WaitPolicy::Wait || self.is_closing() {
                return answer;
            }
            if self.is_killed(context) {
                return Err(VenusError::new(ErrorKind::Interrupted, "volume"));
            }
            select(heard, self.parts.env.sleep(self.with_jitter(LOCATION_PAUSE).min(left))).await;
        }
    }
}
