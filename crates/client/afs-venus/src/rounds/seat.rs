//! A place in a round, as the one who has it sees it.

use std::sync::Arc;

use afs_wire::fs::{Change, ChangeReply, Changes};
use afs_wire::xdr::Encode;

use crate::calls::CallReply;
use crate::error::{ErrorKind, Result, VenusError};
use crate::rounds::round::{Place, Round, State};

/// Most bytes of the changes in a list: a request has at most 64 KiB (docs/protocol/extensions.md "ChangeList").
const BYTES_MAX: usize = 60 << 10;

/// A place in a round.
pub(crate) struct Seat {
    round: Arc<Round>,
    place: usize,
}

/// What comes next for a change that was submitted.
pub(crate) enum Step {
    /// Its submitter sends the list.
    Send(Sending),
    /// It was made by a list, or failed with it.
    Over(Result<CallReply<ChangeReply>>),
    /// It is to be made by a call of its own, now.
    Single,
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
                return Some(Step::Send(Sending { round: self.round.clone(), changes, is_answered: false }));
            }
            // One that is alone goes by itself.
            changes.into_iter().for_each(|(place, _)| state.set(place, Place::Single));
            drop(state);
            self.round.changed.notify_waiters();
            state = self.round.state();
        }
        if !state.is_turn(self.place) {
            return None;
        }
        let place = state.places.get_mut(self.place)?;
        match std::mem::replace(place, Place::Single) {
            Place::Over(outcome) => Some(Step::Over(outcome)),
            Place::Single => Some(Step::Single),
            other => {
                *place = other;
                None
            }
        }
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

    /// Takes the changes that fit into a list; the others go by themselves.
    fn take_list(&mut self) -> Vec<(usize, Change)> {
        let (mut list, mut bytes) = (Vec::new(), 0);
        for (at, place) in self.places.iter_mut().enumerate() {
            if !matches!(place, Place::Ready(_)) {
                continue;
            }
            if let Place::Ready(change) = std::mem::replace(place, Place::Single) {
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

/// The changes of a round, with the task to send them as a list. If it is dropped without an outcome they have failed.
pub(crate) struct Sending {
    round: Arc<Round>,
    changes: Vec<(usize, Change)>,
    is_answered: bool,
}

impl Sending {
    /// The list. It stays here too: the numbers of places.
    pub fn list(&self) -> Changes {
        Changes::first_of(self.changes.iter().map(|(_, change)| change.clone().into()))
    }

    /// The server has made the first changes, with these replies, and none of the others.
    pub fn answered(mut self, replies: Vec<CallReply<ChangeReply>>) {
        self.is_answered = true;
        let mut state = self.round.state();
        for ((place, _), reply) in self.changes.iter().zip(replies) {
            state.sent(*place, Place::Over(Ok(reply)));
        }
    }

    /// It is not known which changes the server has made: each has failed.
    pub fn failed(self, error: &VenusError) {
        let mut state = self.round.state();
        for (place, _) in &self.changes {
            state.sent(*place, Place::Over(Err(error.clone())));
        }
    }
}

impl Drop for Sending {
    /// After an outcome no change is on its way any more but those that were not made.
    fn drop(&mut self) {
        let given_up =
            self.is_answered.then_some(()).ok_or_else(|| VenusError::new(ErrorKind::ShutDown, "ChangeList"));
        let mut state = self.round.state();
        for (place, _) in &self.changes {
            let left = given_up.clone().map_or_else(|error| Place::Over(Err(error)), |()| Place::Single);
            state.sent(*place, left);
        }
        drop(state);
        self.round.changed.notify_waiters();
    }
}
