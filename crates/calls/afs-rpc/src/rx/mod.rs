//! Asynchronous interface of one Rx endpoint.

mod admission;
mod claimant;
mod commands;
mod drain;
mod driver;
mod gso_batch;
mod incomplete;
mod pools;
mod state;
pub(crate) mod stream;

pub(crate) use claimant::Claimant;
pub(crate) use pools::{Channels, PoolKey};

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use afs_rx::{Endpoint, Instant, ListenError, NullServer, ServiceOptions};
use afs_wire::rpc::ServiceId;
use parking_lot::Mutex;

use crate::EnvRef;
use crate::client::{Connection, Security};
use crate::limits::Limits;
use crate::server::{ServerCall, Service};
use state::{Arrival, Effects, State};
use stream::Stream;

/// Notifies the driver that there may be something to transmit, or an earlier deadline.
///
/// Called without any lock held, from any thread, often: it must be cheap, and must not call back into handlers.
/// After it, the driver calls [`Rx::drain_transmits`] and [`Rx::poll_timeout`] soon.
pub trait NotifyDriver: Send + Sync + 'static {
    /// The endpoint may have changed.
    fn notify(&self);
}

/// Only a loopback address can be trusted without authentication.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0} is not a loopback address")]
pub struct NotLoopback(pub SocketAddr);

/// Asynchronous interface of one [`Endpoint`]: outgoing calls, incoming calls, and the driver's methods. Cheap to
/// clone.
///
/// One short lock guards the endpoint; it is never held while a datagram is sent, packets are sealed or opened, a
/// handler runs or a task is woken.
#[derive(Clone)]
pub struct Rx(Arc<Shared>);

/// A weak reference to an [`Rx`]: for drivers, which the `Rx` itself owns through its [`NotifyDriver`].
#[derive(Clone)]
pub struct WeakRx(Weak<Shared>);

impl WeakRx {
    /// The `Rx`, if it still exists.
    #[must_use]
    pub fn upgrade(&self) -> Option<Rx> {
        self.0.upgrade().map(Rx)
    }
}

impl fmt::Debug for WeakRx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakRx")
    }
}

pub(crate) struct Shared {
    env: EnvRef,
    driver: Arc<dyn NotifyDriver>,
    limits: Limits,
    state: Mutex<State>,
    drain: drain::Drain,
}

impl fmt::Debug for Rx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rx").finish_non_exhaustive()
    }
}

impl Rx {
    /// Wraps `endpoint` with the default [`Limits`].
    #[must_use]
    pub fn new(env: EnvRef, endpoint: Endpoint, driver: Arc<dyn NotifyDriver>) -> Self {
        Self::with_limits(env, endpoint, driver, Limits::default())
    }

    /// Wraps `endpoint`.
    #[must_use]
    pub fn with_limits(
        env: EnvRef,
        endpoint: Endpoint,
        driver: Arc<dyn NotifyDriver>,
        limits: Limits,
    ) -> Self {
        let state = Mutex::new(State::new(endpoint, limits));
        Self(Arc::new(Shared { env, driver, limits, state, drain: drain::Drain::default() }))
    }

    /// A weak reference.
    #[must_use]
    pub fn downgrade(&self) -> WeakRx {
        WeakRx(Arc::downgrade(&self.0))
    }

    /// The environment of this transport.
    #[must_use]
    pub fn env(&self) -> &EnvRef {
        &self.0.env
    }

    /// Its bounds.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Offers `service` without security (rxnull).
    ///
    /// # Errors
    /// If its number is offered already, or too many are.
    pub fn listen(&self, service: Arc<dyn Service>) -> Result<(), ListenError> {
        self.listen_with(service, vec![Box::new(NullServer)])
    }

    /// Offers `service` under the given security classes. The first call from an address that has not replied
    /// recently waits until it has replied to a ping or a challenge; until then at most three times the bytes
    /// received from there are sent to it.
    ///
    /// # Errors
    /// As [`Rx::listen`], or if two classes have one index or there is none.
    pub fn listen_with(
        &self,
        service: Arc<dyn Service>,
        security: Vec<Box<dyn afs_rx::ServerSecurity>>,
    ) -> Result<(), ListenError> {
        let mut state = self.0.state.lock();
        let id = service.id().0;
        state.endpoint.listen_with(id, security, ServiceOptions { reachability_check: true })?;
        state.services.insert(id, service);
        Ok(())
    }

    /// A connection to `service` at `peer`. Nothing is sent until a call is made. Connections with equal arguments
    /// share their Rx connections.
    #[must_use]
    pub fn connection(&self, peer: SocketAddr, service: ServiceId, security: Security) -> Connection {
        Connection::new(self.clone(), peer, service, security)
    }

    /// Treats calls without security from this loopback address as [`Identity::Local`](crate::Identity::Local): the
    /// administrator. For tests and simulations: a source address is no authentication, and the servers of a cell
    /// trust none.
    ///
    /// # Errors
    /// For an address that is not loopback: its packets can be forged.
    pub fn trust(&self, peer: SocketAddr) -> Result<(), NotLoopback> {
        if !peer.ip().to_canonical().is_loopback() {
            return Err(NotLoopback(peer));
        }
        self.0.state.lock().trusted.insert(peer);
        Ok(())
    }

    /// Revokes [`Rx::trust`].
    pub fn distrust(&self, peer: SocketAddr) {
        self.0.state.lock().trusted.remove(&peer);
    }

    /// Counters of the endpoint.
    #[must_use]
    pub fn stats(&self) -> afs_rx::Stats {
        self.0.state.lock().endpoint.stats().clone()
    }

    /// The smoothed round trip to a peer, measured with the packets of all calls; `None` without a recent
    /// measurement.
    #[must_use]
    pub fn round_trip(&self, peer: SocketAddr) -> Option<std::time::Duration> {
        self.0.state.lock().endpoint.round_trip(peer)
    }

    /// As [`Endpoint::narrow_path`].
    #[must_use]
    pub fn narrow_path(&self, peer: SocketAddr) -> Option<usize> {
        self.0.state.lock().endpoint.narrow_path(peer)
    }

    /// As [`Endpoint::doubt_path_to`].
    pub fn doubt_path(&self, peer: SocketAddr) {
        self.0.state.lock().endpoint.doubt_path_to(peer);
    }

    /// Numbers of objects that the endpoint holds.
    #[must_use]
    pub fn holdings(&self) -> afs_rx::Holdings {
        self.0.state.lock().endpoint.holdings()
    }

    /// Ends all calls in both directions with [`CallError::Closed`](crate::CallError::Closed), aborts those with a
    /// waiting task with `VRESTARTING`, and removes services and connections. The driver should drain once more
    /// afterwards.
    pub fn close(&self) {
        self.with(|state, now| state.close(now));
    }

    /// Whether [`Rx::close`] has been called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.state.lock().closed
    }

    /// Runs a command on the endpoint, then, without the lock, its effects.
    fn with<T>(&self, command: impl FnOnce(&mut State, Instant) -> T) -> T {
        let now = self.0.env.now();
        let (value, effects) = {
            let mut state = self.0.state.lock();
            let value = command(&mut state, now);
            (value, state.collect(now))
        };
        for arrival in self.settle(effects) {
            self.0.env.spawn(self.handler(arrival));
        }
        self.0.driver.notify();
        value
    }

    /// Wakes the tasks of the effects; returns the calls that have arrived.
    fn settle(&self, effects: Effects) -> Vec<Arrival> {
        effects.wakers.into_iter().for_each(std::task::Waker::wake);
        effects.changed.iter().for_each(|changed| changed.notify_waiters());
        effects.arrivals
    }

    fn handler(&self, arrival: Arrival) -> crate::BoxFuture<'static, ()> {
        let Arrival { call, service, caller, claimant } = arrival;
        let stream = Stream::incoming(self.clone(), call, caller.peer, claimant);
        let id = service.id();
        service.serve(ServerCall::new(stream, caller, id))
    }
}
