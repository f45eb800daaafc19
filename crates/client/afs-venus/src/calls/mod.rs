//! Calls to the sites of a volume, with the retry ladder.
//!
//! Owns the endpoint. A call has a [`CallContext`] and tries one address after the other until the ladder ends. One
//! task watches each unreachable address; processes that wait for it wait for that task's result. Volume locations are
//! queried as needed. What a call learns of promises is passed to [`crate::promises`]; the return of a server is passed
//! to a hook given at the start.

mod attempt;
mod attempts;
mod call;
mod context;
mod failure;
mod hedge;
mod locate;
mod probe;
mod refused_token;
mod retry;
mod servers;
mod target;
mod times;
mod waiting;
mod watch;

pub(crate) use context::{CallContext, WaitPolicy};
pub(crate) use target::{CallOutcome, CallReply, Evidence, Target};
pub(crate) use times::{CallTimes, EndedCall, TimedCall};

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use afs_rpc::sync::Notify;
use afs_rpc::{EnvExt, EnvRef, Instant, Rx, ServerSecurity, Service};

use crate::config::Limits;
use crate::counters::Counters;
use crate::error::{ErrorKind, Result, VenusError};
use crate::identity::Identity;
use crate::location::Location;
use crate::promises::Promises;

/// What calls need from other parts.
pub(crate) struct Parts {
    pub env: EnvRef,
    pub rx: Rx,
    pub identity: Arc<Identity>,
    pub location: Arc<Location>,
    pub counters: Arc<Counters>,
    pub promises: Arc<Promises>,
}

/// Calls of a mount.
pub(crate) struct Calls {
    /// For background tasks.
    me: Weak<Calls>,
    parts: Parts,
    limits: Limits,
    /// Notified when a server is reachable again, or a volume is found at another one.
    reachable_again: Notify,
    /// Called when an unreachable server replies.
    returned: Box<dyn Fn() + Send + Sync>,
    /// Tells whether a process is being killed.
    killed: OnceLock<fn(u32) -> bool>,
    closing: AtomicBool,
    times: CallTimes,
    /// Ends the watching tasks.
    ended: Arc<Notify>,
}

impl Calls {
    /// `returned` is called when an unreachable server replies, in the task of the call that found it.
    pub fn new(parts: Parts, limits: &Limits, returned: impl Fn() + Send + Sync + 'static) -> Arc<Calls> {
        Arc::new_cyclic(|me| Calls {
            me: me.clone(),
            parts,
            limits: limits.clone(),
            reachable_again: Notify::new(),
            returned: Box::new(returned),
            killed: OnceLock::new(),
            closing: AtomicBool::new(false),
            times: CallTimes::default(),
            ended: Arc::default(),
        })
    }

    /// Offers a service on the endpoint; without security if there are no classes.
    ///
    /// # Errors
    /// The endpoint already has a service of that number.
    pub fn offer(&self, service: Arc<dyn Service>, classes: Vec<Box<dyn ServerSecurity>>) -> Result<()> {
        let offered = match classes.is_empty() {
            true => self.parts.rx.listen(service),
            false => self.parts.rx.listen_with(service, classes),
        };
        offered.map_err(|error| {
            tracing::error!(%error, "the callback service cannot be offered");
            VenusError::new(ErrorKind::Invalid, "start")
        })
    }

    /// From now on no call waits for unreachable servers, and no task probes them.
    pub fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
        self.reachable_again.notify_waiters();
        self.ended.notify_waiters();
    }

    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Times of the calls.
    pub fn times(&self) -> &CallTimes {
        &self.times
    }

    /// The present time, see [`Promises::now`].
    fn now(&self) -> Instant {
        self.parts.promises.now()
    }

    /// A pause lengthened by up to a quarter at random, so that waiting tasks do not retry at the same moment.
    fn with_jitter(&self, pause: Duration) -> Duration {
        pause + pause / 4 * (self.parts.env.random_u64() % 256) as u32 / 256
    }
}

#[cfg(test)]
pub(crate) mod test_kit;
#[cfg(test)]
mod tests;
