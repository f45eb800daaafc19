//! Network tap: sees every datagram between two machines, and can inject datagrams with any source address.

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
    /// Its source address.
    pub from: SocketAddr,
    /// Its destination.
    pub to: SocketAddr,
    /// Its payload.
    pub data: Bytes,
    /// The network delivers it twice.
    pub doubled: bool,
}

/// Queue of the datagrams seen and not yet taken, in order: at most 65,536, of which the oldest are dropped first.
///
/// Datagrams within one machine are not seen. Those that the network loses, duplicates or drops in a partition are
/// seen once.
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
    /// All datagrams seen since the last call; waits for at least one.
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

    /// All datagrams seen since the last call, perhaps none.
    #[must_use]
    pub fn take(&self) -> Vec<Seen> {
        self.0.0.lock().seen.drain(..).collect()
    }
}

impl World {
    /// A tap that sees every datagram between machines from now on, until it is dropped.
    #[must_use]
    pub fn tap(&self) -> Tap {
        let queue = Arc::new(TapQueue::default());
        self.with(|state| state.net.taps.push(Arc::downgrade(&queue)));
        Tap(queue)
    }

    /// Sends a datagram with any source address, genuine or forged.
    pub fn inject(&self, from: SocketAddr, to: SocketAddr, data: Bytes) {
        let woken = self.with(|state| state.send(from, to, data));
        woken.into_iter().for_each(Waker::wake);
    }
}

/// Shows a datagram to all taps.
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
