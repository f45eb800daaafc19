//! A place in a round, as the one who has it sees it.

use std::sync::Arc;

use afs_wire::fs::{Change, ChangeReply, Changes};
use afs_wire::xdr::Encode;

use crate::calls::CallReply;
use crate::rounds::round::{Doubt, Place, Round, State};

/// Most bytes of the changes in a list: a request has at most 64 KiB (docs/protocol/extensions.md "ChangeList").
const BYTES_MAX: usize = 60 << 10;

/// A place in a round.
pub(crate) struct Seat {
    round: Arc<Round>,
    place: usize,
}

/// What comes next for a change that was submitted.
#[expect(clippy::large_enum_variant, reason = "one a change, moved once")]
pub(crate) enum Step {
    /// Its submitter sends the list.
    Send(Sending),
    /// It was made, by a list.
    Made(CallReply<ChangeReply>),
    /// It is to be made by its single call, now; with the doubt whether a list has made it already.
    Single(Option<Doubt>),
}

impl Seat {
    pub(super) fn new(round: Arc<Round>, place: usize) -> Self {
        Seat { round, place }
    }

    /// True if the round has no other place.
    pub fn is_alone(&self) -> bool {
        self.round.state().places.len() == 1
    }

    /// Submits the change, and waits for the next step. One of the submitters gets the list of all when the last one has
    /// submitted his; each of the others gets his turn.
    pub async fn submit(&self, change: Change) -> Step {
        self.set(Place::Ready(change));
        self.next().await
    }

    /// Waits for the next step.
    pub async fn next(&self) -> Step {
        loop {
            let changed = self.round.changed.notified();
            if let Some(step) = self.step() {
                return step;
            }
            changed.await;
        }
    }

    fn step(&self) -> Option<Step> {
        let mut state = self.round.state();
        if !state.is_complete() {
            return None;
        }
        if !state.is_sent {
            state.is_sent = true;
            let changes = state.take_list();
            if changes.len() > 1 {
                return Some(Step::Send(Sending { round: self.round.clone(), changes }));
            }
            // One that is alone goes by its single call.
            changes.into_iter().for_each(|(place, _)| state.set(place, Place::Single { was_sent: false }));
            drop(state);
            self.round.changed.notify_waiters();
            state = self.round.state();
        }
        if !state.is_turn(self.place) {
            return None;
        }
        let doubt = state.doubt;
        let place = state.places.get_mut(self.place)?;
        match std::mem::replace(place, Place::Single { was_sent: false }) {
            Place::Made(reply) => Some(Step::Made(reply)),
            Place::Single { was_sent } => Some(Step::Single(doubt.filter(|_| was_sent))),
            other => {
                *place = other;
                None
            }
        }
    }

    /// A change of the list had not been made: those behind it have not either.
    pub fn was_not_made(&self) {
        self.round.state().doubt = None;
    }

    fn set(&self, new: Place) {
        self.round.state().set(self.place, new);
        self.round.changed.notify_waiters();
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.set(Place::Left);
    }
}

impl State {
    fn set(&mut self, place: usize, new: Place) {
        if let Some(place) = self.places.get_mut(place) {
            *place = new;
        }
    }

    /// Sets what has become of a change that was sent, unless its submitter has left.
    fn sent(&mut self, place: usize, new: Place) {
        if let Some(place) = self.places.get_mut(place).filter(|place| matches!(place, Place::Sent)) {
            *place = new;
        }
    }

    /// Takes the changes that fit into a list; the others are left to their single calls.
    fn take_list(&mut self) -> Vec<(usize, Change)> {
        let (mut list, mut bytes) = (Vec::new(), 0);
        for (at, place) in self.places.iter_mut().enumerate() {
            if !matches!(place, Place::Ready(_)) {
                continue;
            }
            if let Place::Ready(change) = std::mem::replace(place, Place::Single { was_sent: false }) {
                bytes += change.to_bytes().len();
                if bytes <= BYTES_MAX {
                    *place = Place::Sent;
                    list.push((at, change));
                }
            }
        }
        list
    }
}

/// The changes of a round, with the task to send them as a list. If it is dropped without an outcome it is not known
/// whether they were made.
pub(crate) struct Sending {
    round: Arc<Round>,
    changes: Vec<(usize, Change)>,
}

impl Sending {
    /// The list. It stays here too: the numbers of places.
    pub fn list(&self) -> Changes {
        Changes::first_of(self.changes.iter().map(|(_, change)| change.clone()))
    }

    /// Before the list is sent: what will be in doubt if no reply comes.
    pub fn begin(&self, doubt: Doubt) {
        self.round.state().doubt = Some(doubt);
    }

    /// The server has made the first changes, with these replies, and none of the others.
    pub fn answered(self, replies: Vec<CallReply<ChangeReply>>) {
        let mut state = self.round.state();
        state.doubt = None;
        for ((place, _), reply) in self.changes.iter().zip(replies) {
            state.sent(*place, Place::Made(reply));
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        let mut state = self.round.state();
        for (place, _) in &self.changes {
            state.sent(*place, Place::Single { was_sent: true });
        }
        drop(state);
        self.round.changed.notify_waiters();
    }
}
