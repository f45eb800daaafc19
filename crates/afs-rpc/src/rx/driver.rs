//! The driver's side: datagrams and time in, datagrams and deadlines out.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use afs_rx::{Instant, Transmit};
use bytes::Bytes;

use super::Rx;
use super::poll::poll_once;
use super::state::{Effects, State};
use super::train::{Train, next_train};
use crate::sync::lock;

/// Datagrams handled under one hold of the lock.
const HANDLED_AT_ONCE: usize = 64;
/// Trains built under one hold of the lock, before they are sent without it.
const BUILT_AT_ONCE: usize = 4;
/// Times that a thread which is not the driver's builds and sends before it leaves the rest to the driver: about a
/// millisecond's work.
const ROUNDS_OF_A_GUEST: usize = 8;
/// Answers of the endpoint taken under one hold of the lock.
const TAKEN_AT_ONCE: usize = 64;

/// Who is sending. One thread at a time, so that datagrams leave in the order they were made.
pub(super) struct Drain {
    /// Calls of `drain_transmits` since the sending thread last found nothing to send; 0 when nobody is sending.
    wanted: AtomicUsize,
    trains: Mutex<Vec<Train>>,
}

impl Drain {
    pub(super) fn new(wanted: AtomicUsize) -> Self {
        let trains = (0..BUILT_AT_ONCE).map(|_| Train::default()).collect();
        Self { wanted, trains: Mutex::new(trains) }
    }
}

/// What one hold of the lock gave.
struct Built {
    trains: usize,
    /// The endpoint has nothing more to send.
    dry: bool,
    /// The driver sleeps past a deadline that has moved forward.
    overslept: bool,
}

/// The right to send. Another one may begin when it is dropped.
struct Turn<'a>(&'a AtomicUsize);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

impl Rx {
    /// Datagrams have arrived. Handlers of new calls run on this thread until they first have to wait.
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

    /// The network says that `peer` cannot be reached.
    pub fn handle_unreachable(&self, now: Instant, peer: SocketAddr) {
        self.drive(now, |state| state.endpoint.handle_unreachable(now, peer));
    }

    /// Time has passed: [`Rx::poll_timeout`] is due, or may be.
    pub fn handle_timeout(&self, now: Instant) {
        self.drive(now, |state| state.on_timeout(now));
    }

    /// When [`Rx::handle_timeout`] wants to be called. Any other call on this object may change it.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        lock(&self.0.state).deadline()
    }

    /// As [`Rx::poll_timeout`], for a driver that is about to sleep until then: [`Rx::drain_some_transmits`] on another
    /// thread tells whether the deadline has moved forward since.
    #[must_use]
    pub fn fall_asleep(&self) -> Option<Instant> {
        let mut state = lock(&self.0.state);
        let deadline = state.deadline();
        state.asleep_until = Some(deadline);
        deadline
    }

    /// The driver is awake and will ask for the deadline again before it sleeps.
    pub fn wake_up(&self) {
        lock(&self.0.state).asleep_until = None;
    }

    /// Hands every datagram or train that may leave now to `send`, in order, without the lock.
    ///
    /// Only one thread sends at a time. If another one is at it, this returns at once, and that thread sends what
    /// this one came for before it returns.
    pub fn drain_transmits(&self, send: impl FnMut(&Transmit, &[u8])) {
        self.drain(usize::MAX, send);
    }

    /// As [`Rx::drain_transmits`], for a thread that is not the driver's own and has other things to do: it stops after
    /// a few hundred datagrams, however much the others add.
    ///
    /// Answers whether the driver has to be woken, if it sleeps: to send the rest, or because its deadline since
    /// [`Rx::fall_asleep`] has moved forward.
    pub fn drain_some_transmits(&self, send: impl FnMut(&Transmit, &[u8])) -> bool {
        self.drain(ROUNDS_OF_A_GUEST, send)
    }

    fn drain(&self, mut rounds: usize, mut send: impl FnMut(&Transmit, &[u8])) -> bool {
        let wanted = &self.0.drain.wanted;
        if wanted.fetch_add(1, Ordering::AcqRel) != 0 {
            return false;
        }
        // Passes the turn on, also if `send` panics.
        let turn = Turn(wanted);
        let mut trains = lock(&self.0.drain.trains);
        while rounds > 0 {
            rounds -= 1;
            let seen = wanted.load(Ordering::Acquire);
            let built = self.build(&mut trains);
            trains.iter().take(built.trains).for_each(|train| train.send(&mut send));
            if built.dry && wanted.compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                // It has been passed on already; somebody else may have it by now.
                std::mem::forget(turn);
                return built.overslept;
            }
        }
        true
    }

    /// Fills as many of `trains` as there is something to send.
    fn build(&self, trains: &mut [Train]) -> Built {
        let now = self.0.env.now();
        let mut state = lock(&self.0.state);
        let (mut used, mut taken, mut dry) = (0, 0, false);
        while taken < TAKEN_AT_ONCE
            && let Some((train, before)) = next_train(trains, used)
        {
            let Some(transmit) = state.endpoint.poll_transmit(now, &mut train.buffer) else {
                dry = true;
                break;
            };
            taken += 1;
            let joined = before.is_some_and(|before| before.join(&transmit, &train.buffer));
            if !joined {
                train.start(transmit);
                used += 1;
            }
        }
        Built { trains: used, dry, overslept: state.is_overslept() }
    }

    /// Changes the endpoint on the driver's own thread, and runs what follows from it right there.
    fn drive(&self, now: Instant, change: impl FnOnce(&mut State)) {
        let effects = {
            let mut state = lock(&self.0.state);
            change(&mut state);
            state.collect(now)
        };
        self.run_here(effects);
    }

    fn run_here(&self, effects: Effects) {
        for arrival in self.settle(effects) {
            let mut handler = self.handler(arrival);
            if !poll_once(handler.as_mut()) {
                self.0.env.spawn(handler);
            }
        }
    }
}
