//! Interface of the driver: datagrams and time in, datagrams and deadlines out.

use std::net::SocketAddr;

use afs_rx::{Instant, Transmit};
use bytes::Bytes;

use super::Rx;
use super::state::{Effects, State};
use crate::Stall;

/// Datagrams handled under one hold of the lock.
const HANDLED_AT_ONCE: usize = 64;
/// Rounds of taking and sending on a thread that is not the driver's, before it leaves the rest to the driver: about
/// a millisecond's work.
const ROUNDS_OF_OTHER_THREADS: usize = 16;

impl Rx {
    /// Handles received datagrams. Handlers of new calls run on this thread until they first have to wait.
    pub fn handle_datagrams(&self, now: Instant, datagrams: impl IntoIterator<Item = (SocketAddr, Bytes)>) {
        let mut datagrams = datagrams.into_iter().peekable();
        while datagrams.peek().is_some() {
            let batch = datagrams.by_ref().take(HANDLED_AT_ONCE);
            self.drive(now, |state| {
                for (from, data) in batch {
                    state.endpoint.handle_datagram(now, from, data);
                }
            });
        }
    }

    /// The network reported `peer` unreachable.
    pub fn handle_unreachable(&self, now: Instant, peer: SocketAddr) {
        self.drive(now, |state| state.endpoint.handle_unreachable(now, peer));
    }

    /// Handles expired timers, when [`Rx::poll_timeout`] is due or may be.
    pub fn handle_timeout(&self, now: Instant) {
        self.drive(now, |state| state.on_timeout(now));
    }

    /// When [`Rx::handle_timeout`] must be called. Any other call on this object may change it.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.0.state.lock().deadline()
    }

    /// As [`Rx::poll_timeout`], for a driver that is about to sleep until then: [`Rx::drain_some_transmits`] on
    /// another thread reports whether the deadline has moved forward since.
    #[must_use]
    pub fn begin_sleep(&self) -> Option<Instant> {
        let mut state = self.0.state.lock();
        let deadline = state.deadline();
        state.asleep_until = Some(deadline);
        deadline
    }

    /// The driver is awake and will ask for the deadline again before it sleeps.
    pub fn end_sleep(&self) {
        self.0.state.lock().asleep_until = None;
    }

    /// Hands every datagram or batch that is ready to `send`, without the lock. Those of one call keep their order.
    ///
    /// A few threads may send at a time, each what it has sealed itself. If all of their slots are taken, this
    /// returns at once, and those threads send this one's output before they return.
    pub fn drain_transmits(&self, send: impl FnMut(&Transmit, &[u8])) {
        self.drain(usize::MAX, send, || ());
    }

    /// As [`Rx::drain_transmits`], for one of several threads that receive in turn: `before_long_work` is called once
    /// before long work, so that another thread can receive meanwhile. Returns what [`Rx::drain_some_transmits`]
    /// does.
    pub fn drain_transmits_in_turn(
        &self,
        send: impl FnMut(&Transmit, &[u8]),
        before_long_work: impl FnOnce(),
    ) -> bool {
        self.drain(usize::MAX, send, before_long_work)
    }

    /// As [`Rx::drain_transmits`], for a thread that is not the driver's own and has other work: it stops after a few
    /// hundred datagrams, however much other threads add.
    ///
    /// Returns whether the driver must be woken, if it sleeps: to send the rest, or because its deadline since
    /// [`Rx::begin_sleep`] has moved forward.
    pub fn drain_some_transmits(&self, send: impl FnMut(&Transmit, &[u8])) -> bool {
        self.drain(ROUNDS_OF_OTHER_THREADS, send, || ())
    }

    /// Changes the endpoint on the driver's own thread, and runs the effects there.
    fn drive(&self, now: Instant, change: impl FnOnce(&mut State)) {
        let effects = {
            let mut state = self.0.state.lock();
            change(&mut state);
            state.collect(now)
        };
        self.run_here(effects);
    }

    fn run_here(&self, effects: Effects) {
        for arrival in self.settle(effects) {
            // This thread alone receives: it must not wait for a disk.
            self.0.env.start(self.handler(arrival), Stall::None);
        }
    }
}
