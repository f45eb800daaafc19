//! Bounded set of calls by anonymous callers that wait for a reply of their client, for its identity or to a
//! break.
//!
//! The client may take its time, or never reply, and each such call holds one of the places for running
//! calls. The set is therefore far smaller than the number of places: the call that has waited longest gives
//! way.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use afs_rpc::sync::oneshot;
use parking_lot::Mutex;

/// Most calls that wait at one time, and most of one address. An anonymous caller's share of all running
/// calls is 3072.
const WAITING_MAX: usize = 1024;
const ADDRESS_MAX: usize = 128;

/// The waiting calls.
#[derive(Default)]
pub(super) struct WaitingCalls(Mutex<State>);

#[derive(Default)]
struct State {
    /// Sequence numbers given so far.
    turns: u64,
    waiting: BTreeMap<u64, (IpAddr, oneshot::Sender<()>)>,
    by_address: BTreeSet<(IpAddr, u64)>,
}

/// Membership of one waiting call, until it is dropped.
pub(super) struct WaitingCall {
    room: Arc<WaitingCalls>,
    turn: u64,
}

impl WaitingCalls {
    /// Adds a call from this address. The receiver yields when the call has to give way.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> (WaitingCall, oneshot::Receiver<()>) {
        let (give_way, told) = oneshot::channel();
        let mut state = self.0.lock();
        let displaced = state.one_too_many(address);
        let turn = state.turns;
        state.turns += 1;
        state.waiting.insert(turn, (address, give_way));
        state.by_address.insert((address, turn));
        drop(state);
        if let Some(displaced) = displaced {
            _ = displaced.send(());
        }
        (WaitingCall { room: self.clone(), turn }, told)
    }
}

impl State {
    /// Removes the call that has to give way to another from this address: the oldest of the address if the
    /// address is full, else the oldest of all if the set is full.
    fn one_too_many(&mut self, address: IpAddr) -> Option<oneshot::Sender<()>> {
        let of_address = || self.by_address.range((address, 0)..=(address, u64::MAX));
        let oldest = if of_address().count() >= ADDRESS_MAX {
            of_address().next().map(|(_, turn)| *turn)
        } else if self.waiting.len() >= WAITING_MAX {
            self.waiting.keys().next().copied()
        } else {
            None
        };
        self.take(oldest?)
    }

    fn take(&mut self, turn: u64) -> Option<oneshot::Sender<()>> {
        let (address, give_way) = self.waiting.remove(&turn)?;
        self.by_address.remove(&(address, turn));
        Some(give_way)
    }
}

impl Drop for WaitingCall {
    fn drop(&mut self) {
        // The sender is dropped without the lock: it may wake a task.
        let _sender = self.room.0.lock().take(self.turn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    fn is_told(told: &mut oneshot::Receiver<()>) -> bool {
        use std::future::Future;
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        std::pin::Pin::new(told).poll(&mut context).is_ready()
    }

    #[test]
    fn the_oldest_of_a_full_address_gives_way_else_the_oldest_of_all() {
        let room = Arc::new(WaitingCalls::default());
        let mut first: Vec<_> = (0..ADDRESS_MAX).map(|_| room.enter(address(1))).collect();
        let mut others = Vec::new();
        for number in 2..9 {
            others.extend((0..ADDRESS_MAX).map(|_| room.enter(address(number))));
        }
        assert!(!is_told(&mut first[0].1));
        others.push(room.enter(address(9)));
        assert!(is_told(&mut first[0].1) && !is_told(&mut first[1].1));
        others.push(room.enter(address(5)));
        assert!(!is_told(&mut first[1].1) && is_told(&mut others[3 * ADDRESS_MAX].1));
        drop((first, others));
        let state = room.0.lock();
        assert!(state.waiting.is_empty() && state.by_address.is_empty());
    }
}
