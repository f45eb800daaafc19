//! A listener on the network: it sees every datagram between two machines, and may send in any name.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};

use afs_rpc::Instant;
use bytes::Bytes;
use parking_lot::Mutex;

use crate::world::World;

/// A datagram as it was sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// When it left.
    pub at: Instant,
    /// The source address that it has.
    pub from: SocketAddr,
    /// Where it goes.
    pub to: SocketAddr,
    /// What is in it.
    pub data: Bytes,
    /// The network delivers it twice.
    pub doubled: bool,
}

/// What a listener has seen and not taken yet, in order: at most 65,536 datagrams, of which the oldest go first.
///
/// Datagrams within one machine are not seen. Those that the network loses, doubles or cuts afterwards are seen once.
pub struct Tap(Arc<TapQueue>);

#[derive(Default)]
pub(crate) struct TapQueue(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    seen: VecDeque<Seen>,
    waiting: Option<Waker>,
}

impl TapQueue {
    /// The task to be woken, where no lock of the world is held.
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
    /// Everything seen since the last time, as soon as there is something.
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

    /// Everything seen since the last time, perhaps nothing.
    #[must_use]
    pub fn take(&self) -> Vec<Seen> {
        self.0.0.lock().seen.drain(..).collect()
    }
}

impl World {
    /// A listener that sees every datagram between machines from now on, until it is dropped.
    #[must_use]
    pub fn tap(&self) -> Tap {
        let queue = Arc::new(TapQueue::default());
        self.with(|state| state.net.taps.push(Arc::downgrade(&queue)));
        Tap(queue)
    }

    /// Sends a datagram with any source address, true or false.
    pub fn inject(&self, from: SocketAddr, to: SocketAddr, data: Bytes) {
        let woken = self.with(|state| state.send(from, to, data));
        woken.into_iter().for_each(Waker::wake);
    }
}

/// Shows a datagram to all listeners.
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
