//! State behind the lock: the endpoint, its services and limits, and the tasks that wait.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Waker;

use afs_env::admission::Class;
use afs_rx::{CallId, ConnId, Endpoint, Event, Instant};
use afs_wire::error::AbortCode;

use super::admission::{Admission, Verdict};
use super::claimant::Claimant;
use super::incomplete::Incomplete;
use super::pools::Pools;
use crate::caller::{Caller, ConnKey, Identity};
use crate::credential::Credential;
use crate::limits::Limits;
use crate::server::Service;
use crate::sync::Notify;

pub(crate) struct State {
    pub(super) endpoint: Endpoint,
    pub(super) services: BTreeMap<u16, Arc<dyn Service>>,
    pub(super) admission: Admission<CallId>,
    incomplete: Incomplete<CallId>,
    pub(super) pools: Pools,
    pub(super) trusted: BTreeSet<SocketAddr>,
    pub(super) closed: bool,
    /// Number of threads that are sending.
    pub(super) senders: usize,
    /// The deadline until which the driver sleeps, if it does.
    pub(super) asleep_until: Option<Option<Instant>>,
    limits: Limits,
    /// Wakers of tasks that wait on calls; no entry without one.
    waits: BTreeMap<CallId, Wait>,
    /// Incoming calls that wait to be served, with their claimants.
    held: BTreeMap<CallId, Claimant>,
    /// To be woken after the lock is released.
    to_wake: Vec<Waker>,
    to_notify: Vec<Arc<Notify>>,
}

/// Wakers of one call.
#[derive(Default)]
struct Wait {
    read: Option<Waker>,
    write: Option<Waker>,
}

/// Work to be done after the lock is released.
pub(super) struct Effects {
    pub(super) wakers: Vec<Waker>,
    /// Waiters for a channel.
    pub(super) changed: Vec<Arc<Notify>>,
    pub(super) arrivals: Vec<Arrival>,
}

/// An incoming call that may be served.
pub(super) struct Arrival {
    pub(super) call: CallId,
    pub(super) service: Arc<dyn Service>,
    pub(super) caller: Caller,
    /// The claimant that it is counted for.
    pub(super) claimant: Claimant,
}

impl State {
    pub(super) fn new(endpoint: Endpoint, limits: Limits) -> Self {
        Self {
            endpoint,
            services: BTreeMap::new(),
            admission: Admission::new(limits),
            incomplete: Incomplete::new(limits),
            pools: Pools::new(limits),
            trusted: BTreeSet::new(),
            closed: false,
            senders: 0,
            asleep_until: None,
            limits,
            waits: BTreeMap::new(),
            held: BTreeMap::new(),
            to_wake: Vec::new(),
            to_notify: Vec::new(),
        }
    }

    /// Takes the endpoint's events and turns them into effects outside the lock.
    pub(super) fn collect(&mut self, now: Instant) -> Effects {
        let (wakers, changed) = (std::mem::take(&mut self.to_wake), std::mem::take(&mut self.to_notify));
        let mut effects = Effects { wakers, changed, arrivals: Vec::new() };
        while let Some(event) = self.endpoint.poll_event() {
            self.on_event(now, event, &mut effects);
        }
        while let Some(call) = self.admission.next() {
            if let Some(claimant) = self.held.remove(&call) {
                self.start(now, call, claimant, &mut effects);
            }
        }
        effects
    }

    fn on_event(&mut self, now: Instant, event: Event, effects: &mut Effects) {
        match event {
            Event::IncomingCall { call, .. } => self.on_incoming(now, call, effects),
            Event::RequestDone(call) => self.on_request_done(call, effects),
            Event::Readable(call) => self.wake(call, true, false, effects),
            Event::Writable(call) => self.wake(call, false, true, effects),
            Event::Finished(call, _) => self.on_finished(now, call, effects),
            Event::ChannelFree(connection) => effects.changed.extend(self.pools.on_channel_free(connection)),
            Event::ConnectionFailed(connection, _) => {
                let waiting = self.pools.on_failed(now, connection, &mut self.endpoint);
                effects.changed.extend(waiting);
            }
            _ => {}
        }
    }

    fn on_incoming(&mut self, now: Instant, call: CallId, effects: &mut Effects) {
        let Some(info) = self.endpoint.call(call) else { return };
        let claimant = Claimant::new(info.peer, &self.identity(info.connection, info.peer));
        if !info.is_request_done && claimant.class == Class::Known {
            return self.start_incomplete(now, call, claimant, effects);
        }
        match self.admission.arrive(claimant, call) {
            Verdict::Serve => self.start(now, call, claimant, effects),
            Verdict::Wait => drop(self.held.insert(call, claimant)),
            Verdict::Refuse => self.refuse(now, call, self.limits.busy),
        }
    }

    fn start_incomplete(&mut self, now: Instant, call: CallId, claimant: Claimant, effects: &mut Effects) {
        if let Some((displaced, whose)) = self.incomplete.arrive(claimant, call) {
            // Its handler releases the place when it gets the error.
            self.admission.count_running(whose);
            self.endpoint.abort(now, displaced, self.limits.busy.0);
        }
        self.start(now, call, claimant, effects);
    }

    /// From here on the call counts as a complete one.
    fn on_request_done(&mut self, call: CallId, effects: &mut Effects) {
        if let Some(claimant) = self.incomplete.remove(call) {
            self.admission.count_running(claimant);
        }
        self.wake(call, true, false, effects);
    }

    /// Hands a call that has its place in the limits to its service.
    fn start(&mut self, now: Instant, call: CallId, claimant: Claimant, effects: &mut Effects) {
        let info = self.endpoint.call(call);
        let service = info.and_then(|info| self.services.get(&info.service).cloned());
        match (info, service) {
            (Some(info), Some(service)) => {
                let identity = self.identity(info.connection, info.peer);
                let caller = Caller {
                    peer: info.peer,
                    connection: ConnKey { epoch: info.epoch.0, cid: info.cid.0 },
                    security_index: info.security_index,
                    identity,
                };
                effects.arrivals.push(Arrival { call, service, caller, claimant });
            }
            _ => {
                self.free_place(call, Some(claimant));
                self.refuse(now, call, AbortCode::RX_INVALID_OPERATION);
            }
        }
    }

    /// Identity of a connection's client: the authenticated one takes precedence over a trusted address.
    fn identity(&self, connection: ConnId, peer: SocketAddr) -> Identity {
        let proven = self.endpoint.connection(connection).and_then(|info| info.identity);
        match proven.map(Arc::downcast::<Credential>) {
            Some(Ok(credential)) => Identity::Proven(credential),
            Some(Err(_)) => Identity::Anonymous,
            None if self.trusted.contains(&peer) => Identity::Local,
            None => Identity::Anonymous,
        }
    }

    fn refuse(&mut self, now: Instant, call: CallId, code: AbortCode) {
        self.endpoint.abort(now, call, code.0);
        self.endpoint.release(now, call);
    }

    fn on_finished(&mut self, now: Instant, call: CallId, effects: &mut Effects) {
        self.wake(call, true, true, effects);
        if let Some(claimant) = self.held.remove(&call) {
            self.admission.forget(claimant, call);
            self.endpoint.release(now, call);
        }
    }

    fn wake(&mut self, call: CallId, read: bool, write: bool, effects: &mut Effects) {
        let Some(wait) = self.waits.get_mut(&call) else { return };
        if read {
            effects.wakers.extend(wait.read.take());
        }
        if write {
            effects.wakers.extend(wait.write.take());
        }
    }

    /// Registers the waker for when `call` can be read.
    pub(super) fn wait_to_read(&mut self, call: CallId, waker: &Waker) {
        self.waits.entry(call).or_default().read = Some(waker.clone());
    }

    /// Registers the waker for when `call` can be written.
    pub(super) fn wait_to_write(&mut self, call: CallId, waker: &Waker) {
        self.waits.entry(call).or_default().write = Some(waker.clone());
    }

    /// Releases a call that is no longer in use.
    pub(super) fn release(&mut self, now: Instant, call: CallId) {
        self.waits.remove(&call);
        self.endpoint.release(now, call);
    }

    /// A served call is over.
    pub(super) fn free_place(&mut self, call: CallId, place: Option<Claimant>) {
        if let Some(claimant) = place.filter(|_| self.incomplete.remove(call).is_none()) {
            self.admission.depart(claimant);
        }
    }

    /// Adds a sending thread, if there is output and fewer than `max` are sending. Each of those checks for output
    /// once more before it ends.
    pub(super) fn begin_sending(&mut self, max: usize) -> bool {
        let begins = self.senders < max && self.endpoint.has_output();
        self.senders += usize::from(begins);
        begins
    }

    /// The driver's next deadline.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let pools = self.pools.deadline();
        match (self.endpoint.poll_timeout(), pools) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Whether the driver sleeps past the current deadline.
    pub(super) fn sleeps_past_deadline(&self) -> bool {
        match self.asleep_until {
            None => false,
            Some(None) => self.deadline().is_some(),
            Some(Some(asleep_until)) => self.deadline().is_some_and(|deadline| deadline < asleep_until),
        }
    }

    pub(super) fn on_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        self.pools.close_idle(now, &mut self.endpoint);
    }

    pub(super) fn close(&mut self, now: Instant) {
        self.closed = true;
        self.services.clear();
        for (call, _) in std::mem::take(&mut self.held) {
            self.refuse(now, call, AbortCode::VRESTARTING);
        }
        for (call, wait) in std::mem::take(&mut self.waits) {
            self.endpoint.abort(now, call, AbortCode::VRESTARTING.0);
            self.to_wake.extend(wait.read.into_iter().chain(wait.write));
        }
        self.to_notify = self.pools.close(now, &mut self.endpoint);
    }
}
