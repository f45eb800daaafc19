//! What leaves: taken under the lock, sealed and sent without it, by several threads at a time.

use afs_rx::{Instant, Leaving, Sealing, Transmit, Turn};
use parking_lot::Mutex;

use super::Rx;
use super::state::State;
use super::train::{Train, next_train};

/// Threads that send at a time, at most. More would wait for the processor and for the socket.
const SENDERS_MAX: usize = 4;
/// Trains that one thread takes at once, and keeps buffers for.
const TRAINS: usize = 4;
/// Answers of the endpoint taken under one hold of the lock.
const TAKEN_AT_ONCE: usize = 64;
/// Bytes to be sealed that are taken at once, but for the last train: what one thread has taken no other can work on.
const SEALED_AT_ONCE: usize = 32 << 10;
/// Bytes to be sealed that take no longer than passing other work on to another thread would.
const SEALED_SHORTLY: usize = 4 << 10;

/// Buffers of threads that send, for the next ones.
#[derive(Default)]
pub(super) struct Drain {
    spare: Mutex<Vec<Outbox>>,
}

/// What one thread has taken to send.
#[derive(Default)]
pub(super) struct Outbox {
    trains: [Train; TRAINS],
    /// How many of them are filled.
    used: usize,
    /// Calls whose turn it is.
    turns: Vec<Turn>,
    sealings: Vec<Sealing>,
    /// Where sealed packets are written, and where they wait for others to the same peer.
    sealed: [Train; 2],
}

/// A thread that sends. Its place is free again when this is dropped, also by a panic of `send`.
struct Sender<'a> {
    rx: &'a Rx,
    outbox: Outbox,
    at_it: bool,
}

/// What one hold of the lock gave.
enum Taken {
    Some,
    /// There is nothing more to send, and the thread is a sender no longer. True when the driver sleeps past a deadline that has
    /// moved forward.
    Nothing(bool),
}

impl Drop for Sender<'_> {
    fn drop(&mut self) {
        let outbox = std::mem::take(&mut self.outbox);
        if self.at_it {
            outbox.abandon(&mut self.rx.0.state.lock(), self.rx.0.env.now());
        }
    }
}

impl Rx {
    /// Sends for so many rounds. Calls `before_long` once, before it begins with what takes long: much to seal, or a second round.
    /// Answers whether the driver has to be woken, if it sleeps.
    pub(super) fn drain(
        &self,
        rounds: usize,
        mut send: impl FnMut(&Transmit, &[u8]),
        before_long: impl FnOnce(),
    ) -> bool {
        {
            let mut state = self.0.state.lock();
            if !state.begin_sending(SENDERS_MAX) {
                return state.is_overslept();
            }
        }
        let outbox = self.0.drain.spare.lock().pop().unwrap_or_default();
        let mut sender = Sender { rx: self, outbox, at_it: true };
        let mut before_long = Some(before_long);
        for round in 0..rounds {
            if let Taken::Nothing(overslept) = sender.take() {
                sender.retire();
                return overslept;
            }
            if (round > 0 || sender.outbox.takes_long())
                && let Some(before_long) = before_long.take()
            {
                before_long();
            }
            sender.outbox.send(&mut send);
        }
        true
    }
}

impl Sender<'_> {
    fn take(&mut self) -> Taken {
        let now = self.rx.0.env.now();
        let mut state = self.rx.0.state.lock();
        self.outbox.give_back(&mut state, now);
        self.outbox.fill(&mut state, now);
        if !self.outbox.is_empty() {
            return Taken::Some;
        }
        // Under the same hold of the lock that has found nothing: whatever comes later is sent by who brings it.
        state.senders -= 1;
        self.at_it = false;
        Taken::Nothing(state.is_overslept())
    }

    /// Leaves the buffers to the next.
    fn retire(mut self) {
        let outbox = std::mem::take(&mut self.outbox);
        let mut spare = self.rx.0.drain.spare.lock();
        if spare.len() < SENDERS_MAX {
            spare.push(outbox);
        }
    }
}

impl Outbox {
    fn is_empty(&self) -> bool {
        self.used == 0 && self.sealings.is_empty()
    }

    fn takes_long(&self) -> bool {
        self.sealings.iter().map(Sealing::len).sum::<usize>() > SEALED_SHORTLY
    }

    /// What was taken has left.
    fn give_back(&mut self, state: &mut State, now: Instant) {
        self.used = 0;
        self.turns.drain(..).for_each(|turn| state.endpoint.end_turn(turn));
        self.sealings.drain(..).for_each(|sealing| state.endpoint.end_sealing(now, sealing));
    }

    /// The thread sends no more.
    fn abandon(mut self, state: &mut State, now: Instant) {
        self.give_back(state, now);
        state.senders -= 1;
    }

    /// Takes what may leave.
    fn fill(&mut self, state: &mut State, now: Instant) {
        let (mut taken, mut to_seal) = (0, 0);
        while taken < TAKEN_AT_ONCE
            && to_seal < SEALED_AT_ONCE
            && let Some((train, before)) = next_train(&mut self.trains, self.used)
            && let Some(leaving) = state.endpoint.poll_leaving(now, &mut train.buffer)
        {
            taken += 1;
            match leaving {
                Leaving::Sealing(sealing) => {
                    to_seal += sealing.len();
                    self.sealings.push(sealing);
                }
                Leaving::Ready(transmit, turn) => {
                    self.turns.extend(turn);
                    if !before.is_some_and(|before| before.join(&transmit, &train.buffer)) {
                        train.start(transmit);
                        self.used += 1;
                    }
                }
            }
        }
    }

    fn send(&mut self, send: &mut impl FnMut(&Transmit, &[u8])) {
        self.trains.iter().take(self.used).for_each(|train| train.send(send));
        let [next, waiting] = &mut self.sealed;
        for sealing in &mut self.sealings {
            while let Some(transmit) = sealing.next(&mut next.buffer) {
                if !waiting.join(&transmit, &next.buffer) {
                    next.start(transmit);
                    waiting.send(send);
                    std::mem::swap(next, waiting);
                }
            }
        }
        waiting.send(send);
        waiting.clear();
    }
}
