//! Calls to the sites of a volume, down the retry ladder.
//!
//! Owns the endpoint. A call is made for an [`CallContext`], at one address after the other until the ladder says that an attempt
//! was the last; servers that fall silent are watched by one task each, and whoever waits for one waits for what that task hears.
//! Where a volume is, is asked for on the way. What a call learns of promises it tells those ([`crate::promises`]); that a server is
//! back, which is for those above to act on, it tells a hook that was given to it at the start.

mod attempt;
mod call;
mod context;
mod failure;
mod hedge;
mod locate;
mod probe;
mod retry;
mod servers;
mod target;
mod waiting;
mod watch;

pub(crate) use context::{CallContext, WaitPolicy};
pub(crate) use target::{CallOutcome, CallReply, Target};

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

/// What calls are made with.
pub(crate) struct Parts {
    pub env: EnvRef,
    pub rx: Rx,
    pub identity: Arc<Identity>,
    pub location: Arc<Location>,
    pub counters: Arc<Counters>,
    pub promises: Arc<Promises>,
}

/// The calls of a mount.
pub(crate) struct Calls {
    /// For tasks of its own.
    me: Weak<Calls>,
    parts: Parts,
    limits: Limits,
    /// A server answers again, or a volume is at another one.
    reachable_again: Notify,
    /// Called when a server that was silent answers.
    returned: Box<dyn Fn() + Send + Sync>,
    /// Tells whether a process is being killed.
    killed: OnceLock<fn(u32) -> bool>,
    closing: AtomicBool,
    /// The end of the watches.
    ended: Arc<Notify>,
}

impl Calls {
    /// Nobody has been called yet. `returned` is called, by whoever's call it was, when a server that was silent answers.
    pub fn new(parts: Parts, limits: &Limits, returned: impl Fn() + Send + Sync + 'static) -> Arc<Calls> {
        Arc::new_cyclic(|me| Calls {
            me: me.clone(),
            parts,
            limits: limits.clone(),
            reachable_again: Notify::new(),
            returned: Box::new(returned),
            killed: OnceLock::new(),
            closing: AtomicBool::new(false),
            ended: Arc::default(),
        })
    }

    /// Offers a service to those who are called: without security if there are no classes.
    ///
    /// # Errors
    /// The endpoint has a service of that number already.
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

    /// From now on nobody waits for servers that are away, and nobody asks whether they are back.
    pub fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
        self.reachable_again.notify_waiters();
        self.ended.notify_waiters();
    }

    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// What time it is, see [`Promises::now`].
    fn now(&self) -> Instant {
        self.parts.promises.now()
    }

    /// A pause up to a quarter longer, so that all who wait for the same do not come back at the same moment.
    fn spread(&self, pause: Duration) -> Duration {
        pause + pause / 4 * (self.parts.env.random_u64() % 256) as u32 / 256
    }
}

#[cfg(test)]
pub(crate) mod test_kit;
#[cfg(test)]
mod tests;
