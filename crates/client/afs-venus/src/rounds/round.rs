//! One round: its places, and what has become of the change of each.

use afs_rpc::sync::Notify;
use afs_wire::fs::{Change, ChangeReply};
use parking_lot::{Mutex, MutexGuard};

use crate::calls::CallReply;
use crate::error::Result;

/// Called at the end of a round.
type Ended = Box<dyn FnOnce() + Send + Sync>;

/// A round in progress; it ends with its last seat.
pub(super) struct Round {
    ended: Option<Ended>,
    state: Mutex<State>,
    pub changed: Notify,
}

pub(super) struct State {
    pub places: Vec<Place>,
    pub is_sent: bool,
}

/// A place in a round.
pub(super) enum Place {
    /// Whoever has it has not said yet what the change is.
    Preparing,
    Ready(Change),
    /// In the list, whose reply is awaited.
    Sent,
    /// Made by the list, or not made and to be told so.
    Over(Result<CallReply<ChangeReply>>),
    /// To be made by a call of its own: the list has not made it.
    Single,
    Left,
}

impl Round {
    /// A round for so many; `ended` begins the next one.
    pub fn new(places: usize, ended: impl FnOnce() + Send + Sync + 'static) -> Round {
        let places = std::iter::repeat_with(|| Place::Preparing).take(places).collect();
        let state = Mutex::new(State { places, is_sent: false });
        Round { ended: Some(Box::new(ended)), state, changed: Notify::new() }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Drop for Round {
    fn drop(&mut self) {
        if let Some(ended) = self.ended.take() {
            ended();
        }
    }
}

impl State {
    /// True when everybody has said what the change is, or has left.
    pub fn is_complete(&self) -> bool {
        !self.places.iter().any(|place| matches!(place, Place::Preparing))
    }

    /// True when the places before this one have been left: replies are taken in the order of the changes.
    pub fn is_turn(&self, place: usize) -> bool {
        self.places.iter().take(place).all(|place| matches!(place, Place::Left))
    }
}
