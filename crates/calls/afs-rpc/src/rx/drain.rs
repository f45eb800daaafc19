//! Sending loop: output is taken under the lock, sealed and sent without it, by several threads at a time.

use afs_rx::{Instant, Output, Sealing, Transmit, Turn};
use parking_lot::Mutex;

use super::Rx;
use super::gso_batch::{GsoBatch, next_batch};
use super::state::State;

/// Most threads that send at a time. More would wait for the processor and for the socket.
const SENDERS_MAX: usize = 4;
/// Batches that one thread takes at once, and keeps buffers for.
const BATCHES: usize = 4;
/// Outputs of the endpoint taken under one hold of the lock.
const TAKEN_AT_ONCE: usize = 64;
/// Bytes to be sealed that are taken at once, but for the last batch: other threads cannot work on what one has
/// taken.
const SEALED_AT_ONCE: usize = 32 << 10;
/// Bytes to be sealed that take no longer than passing other work on to another thread would.
const SEALED_SHORTLY: usize = 4 << 10;

/// Buffers of sending threads, for reuse.
#[derive(Default)]
pub(super) struct Drain {
    spare: Mutex<Vec<Outbox>>,
}

/// What one thread has taken to send.
#[derive(Default)]
pub(super) struct Outbox {
    batches: [GsoBatch; BATCHES],
    /// Number of filled batches.
    used: usize,
    /// Turns to be ended once the packets are sent.
    turns: Vec<Turn>,
    sealings: Vec<Sealing>,
    /// Buffers for sealed packets: one being written, one that waits for others to the same peer.
    sealed: [GsoBatch; 2],
}

/// A sending thread. Its slot is freed on drop, also by a panic of `send`.
struct Sender<'a> {
    rx: &'a Rx,
    outbox: Outbox,
    is_sending: bool,
}

/// Result of one hold of the lock.
enum Taken {
    Some,
    /// There is nothing more to send, and the thread has stopped sending. True when the driver sleeps past a deadline
    /// that has moved forward.
    Nothing(bool),
}

impl Drop for Sender<'_> {
    fn drop(&mut self) {
        let outbox = std::mem::take(&mut self.outbox);
        if self.is_sending {
            outbox.stop_sending(&mut self.rx.0.state.lock(), self.rx.0.env.now());
        }
    }
}

impl Rx {
    /// Sends for at most `rounds` rounds. Calls `before_long_work` once, before long work: much to seal, or a second
    /// round. Returns whether the driver must be woken, if it sleeps.
    pub(super) fn drain(
        &self,
        rounds: usize,
        mut send: impl FnMut(&Transmit, &[u8]),
        before_long_work: impl FnOnce(),
    ) -> bool {
        {
            let mut state = self.0.state.lock();
            if !state.begin_sending(SENDERS_MAX) {
                return state.sleeps_past_deadline();
            }
        }
        let outbox = self.0.drain.spare.lock().pop().unwrap_or_default();
        let mut sender = Sender { rx: self, outbox, is_sending: true };
        let mut before_long_work = Some(before_long_work);
        for round in 0..rounds {
            if let Taken::Nothing(wake_driver) = sender.take() {
                sender.keep_buffers();
                return wake_driver;
            }
            if (round > 0 || sender.outbox.takes_long())
                && let Some(before_long_work) = before_long_work.take()
            {
                before_long_work();
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
        self.outbox.end_turns(&mut state, now);
        self.outbox.fill(&mut state, now);
        if !self.outbox.is_empty() {
            return Taken::Some;
        }
        // Under the same hold of the lock that found nothing: later output is sent by the thread that causes it.
        state.senders -= 1;
        self.is_sending = false;
        Taken::Nothing(state.sleeps_past_deadline())
    }

    /// Keeps the buffers for reuse.
    fn keep_buffers(mut self) {
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

    /// The packets were sent: ends their turns.
    fn end_turns(&mut self, state: &mut State, now: Instant) {
        self.used = 0;
        self.turns.drain(..).for_each(|turn| state.endpoint.end_turn(turn));
        self.sealings.drain(..).for_each(|sealing| state.endpoint.end_sealing(now, sealing));
    }

    /// Ends the turns and frees the thread's slot.
    fn stop_sending(mut self, state: &mut State, now: Instant) {
        self.end_turns(state, now);
        state.senders -= 1;
    }

    /// Takes output of the endpoint.
    fn fill(&mut self, state: &mut State, now: Instant) {
        let (mut taken, mut to_seal) = (0, 0);
        while taken < TAKEN_AT_ONCE
            && to_seal < SEALED_AT_ONCE
            && let Some((batch, before)) = next_batch(&mut self.batches, self.used)
            && let Some(output) = state.endpoint.poll_output(now, &mut batch.buffer)
        {
            taken += 1;
            match output {
                Output::Sealing(sealing) => {
                    to_seal += sealing.len();
                    self.sealings.push(sealing);
                }
                Output::Ready(transmit, turn) => {
                    self.turns.extend(turn);
                    if !before.is_some_and(|before| before.join(&transmit, &batch.buffer)) {
                        batch.start(transmit);
                        self.used += 1;
                    }
                }
            }
        }
    }

    fn send(&mut self, send: &mut impl FnMut(&Transmit, &[u8])) {
        self.batches.iter().take(self.used).for_each(|batch| batch.send(send));
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
