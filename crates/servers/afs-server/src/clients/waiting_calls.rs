//! Bounded set of calls by anonymous callers that wait for a reply of their client, for its identity or to a
//! break.
//!
//! The client may take its time, or never reply, and each such call holds one of the places for running
//! calls. The set is therefore far smaller than the number of places: the call that has waited longest gives
//! way.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use afs_rpc::admission::{Admission, Bounds, Origin, Slot};
use afs_rpc::sync::oneshot;
use parking_lot::Mutex;

/// Most calls that wait at one time, and most of one address. An anonymous caller's share of all running
/// calls is 3072.
const WAITING_MAX: usize = 1024;
const ADDRESS_MAX: usize = 128;

/// The waiting calls.
pub(super) struct WaitingCalls(Mutex<State>);

struct State {
    admission: Admission<u64>,
    /// Numbers of calls given so far.
    next: u64,
    waiting: BTreeMap<u64, (Slot, oneshot::Sender<()>)>,
}

/// Membership of one waiting call, until it is dropped.
pub(super) struct WaitingCall {
    room: Arc<WaitingCalls>,
    call: u64,
}

impl Default for WaitingCalls {
    fn default() -> Self {
        let admission = Admission::new(Bounds::of(WAITING_MAX, ADDRESS_MAX));
        WaitingCalls(Mutex::new(State { admission, next: 0, waiting: BTreeMap::new() }))
    }
}

impl WaitingCalls {
    /// Adds a call from this address. The receiver yields when the call has to give way.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> (WaitingCall, oneshot::Receiver<()>) {
        let (give_way, told) = oneshot::channel();
        let mut state = self.0.lock();
        let call = state.next;
        state.next += 1;
        let displaced = state.admission.enter(Origin::of(address), call).and_then(|entered| {
            state.waiting.insert(call, (entered.slot, give_way));
            state.take(entered.instead?)
        });
        drop(state);
        if let Some(displaced) = displaced {
            _ = displaced.send(());
        }
        (WaitingCall { room: self.clone(), call }, told)
    }
}

impl State {
    fn take(&mut self, call: u64) -> Option<oneshot::Sender<()>> {
        let (slot, give_way) = self.waiting.remove(&call)?;
        self.admission.leave(slot);
        Some(give_way)
    }
}

impl Drop for WaitingCall {
    fn drop(&mut self) {
        // The sender is dropped without the lock: it may wake a task.
        let _sender = self.room.0.lock().take(self.call);
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
    fn the_oldest_of_a_full_address_gives_way_else_that_of_the_address_with_most() {
        let room = Arc::new(WaitingCalls::default());
        let mut first: Vec<_> = (0..ADDRESS_MAX).map(|_| room.enter(address(1))).collect();
        let mut others = Vec::new();
        for number in 2..9 {
            others.extend((0..ADDRESS_MAX - usize::from(number == 8)).map(|_| room.enter(address(number))));
        }
        let mut alone = room.enter(address(10));
        assert!(!is_told(&mut first[0].1));
        others.push(room.enter(address(9)));
        assert!(is_told(&mut first[0].1) && !is_told(&mut first[1].1));
        others.push(room.enter(address(5)));
        assert!(!is_told(&mut first[1].1) && is_told(&mut others[3 * ADDRESS_MAX].1));
        others.extend((0..2 * WAITING_MAX).map(|n| room.enter(address((n % 9) as u8))));
        assert!(!is_told(&mut alone.1), "an address with one call keeps it");
        drop((first, others, alone));
        let state = room.0.lock();
        assert!(state.waiting.is_empty() && state.admission.tally().networks() == 0);
    }
}
