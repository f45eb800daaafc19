//! Network taps: they see every datagram, or every byte of a stream, between two machines. Datagrams with any source address.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};

use afs_rpc::Instant;
use bytes::Bytes;
use parking_lot::Mutex;

use crate::world::World;

/// A datagram as it was sent, or bytes of a stream as they arrived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// When it left; of a stream, when it arrived.
    pub at: Instant,
    /// Its source address.
    pub from: SocketAddr,
    /// Its destination.
    pub to: SocketAddr,
    /// Its payload; of a stream, one segment.
    pub data: Bytes,
    /// The network delivers it twice.
    pub doubled: bool,
}

/// Queue of the datagrams, or of the segments of streams, that were seen and not yet taken, in order: at most 65,536, of
/// which the oldest are dropped first.
///
/// What stays within one machine is not seen. Datagrams that the network loses, duplicates or drops in
/// a partition are seen once.
pub struct Tap(Arc<TapQueue>);

#[derive(Default)]
pub(crate) struct TapQueue(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    seen: VecDeque<Seen>,
    waiting: Option<Waker>,
}

impl TapQueue {
    /// Returns the task to be woken once no lock of the simulation is held.
    pub(crate) fn push(&self, seen: Seen) -> Option<Waker> {
        let mut queue = self.0.lock();
        if queue.seen.len() == SEEN_MAX {
            queue.seen.pop_front();
        }
        queue.seen.push_back(seen);
        queue.waiting.take()
    }
}

impl Tap {
    /// All that was seen since the last call; waits for something.
    pub async fn next(&self) -> Vec<Seen> {
        poll_fn(|cx| {
            let mut queue = self.0.0.lock();
            if queue.seen.is_empty() {
                queue.waiting = Some(cx.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(queue.seen.drain(..).collect())
        })
        .await
    }

    /// All that was seen since the last call, perhaps nothing.
    #[must_use]
    pub fn take(&self) -> Vec<Seen> {
        self.0.0.lock().seen.drain(..).collect()
    }
}

/// Queue of the datagrams that arrived at an open port and were not yet taken, in order, up to the bound of a [`Tap`].
pub struct Arrivals(Arc<TapQueue>);

impl Arrivals {
    /// All that have arrived since the last call, perhaps nothing.
    #[must_use]
    pub fn take(&self) -> Vec<Seen> {
        self.0.0.lock().seen.drain(..).collect()
    }
}

impl World {
    /// The datagrams between machines that arrive from now on, each as often as it does, until this is dropped.
    #[must_use]
    pub fn arrivals(&self) -> Arrivals {
        let queue = Arc::new(TapQueue::default());
        self.with(|state| state.net.arrival_taps.push(Arc::downgrade(&queue)));
        Arrivals(queue)
    }

    /// A tap that sees every datagram between machines from now on, until it is dropped.
    #[must_use]
    pub fn tap(&self) -> Tap {
        let queue = Arc::new(TapQueue::default());
        self.with(|state| state.net.taps.push(Arc::downgrade(&queue)));
        Tap(queue)
    }

    /// A tap that sees the bytes of every stream between machines from now on, in order, until it is dropped.
    #[must_use]
    pub fn tap_streams(&self) -> Tap {
        let queue = Arc::new(TapQueue::default());
        self.with(|state| state.net.stream_taps.push(Arc::downgrade(&queue)));
        Tap(queue)
    }

    /// Sends a datagram with any source address, genuine or forged.
    pub fn inject(&self, from: SocketAddr, to: SocketAddr, data: Bytes) {
        let woken = self.with(|state| state.send(from, to, data));
        woken.into_iter().for_each(Waker::wake);
    }
}

/// Shows a datagram or a segment to all taps.
pub(crate) fn show(taps: &mut Vec<Weak<TapQueue>>, seen: &Seen) -> Vec<Waker> {
    let mut woken = Vec::new();
    taps.retain(|tap| {
        let Some(tap) = tap.upgrade() else { return false };
        woken.extend(tap.push(seen.clone()));
        true
    });
    woken
}

const SEEN_MAX: usize = 65_536;
