//! One round: its places, and what has become of the change of each.

use afs_rpc::sync::Notify;
use afs_wire::fs::{Change, ChangeReply};
use afs_wire::ids::DataVersion;
use parking_lot::{Mutex, MutexGuard};

use crate::calls::CallReply;

/// Called at the end of a round.
type Ended = Box<dyn FnOnce() + Send + Sync>;

/// A round in progress; it ends with its last seat.
pub(super) struct Round {
    ended: Option<Ended>,
    state: Mutex<State>,
    pub changed: Notify,
}

/// What is known of a list whose reply was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Doubt {
    /// The directory's version before the list.
    pub before: Option<DataVersion>,
    /// Number of changes in the list, of which the first ones may have been made.
    pub changes: u64,
}

impl Doubt {
    /// True if the changes in doubt, and no others, can have made the directory this version.
    pub fn explains(&self, after: DataVersion) -> bool {
        self.before.is_some_and(|before| before < after && after.0 - before.0 <= self.changes)
    }
}

pub(super) struct State {
    pub places: Vec<Place>,
    pub is_sent: bool,
    /// Unless it is known whether the changes were made that were sent and are not answered.
    pub doubt: Option<Doubt>,
}

/// A place in a round.
pub(super) enum Place {
    /// Whoever has it has not said yet what the change is.
    Preparing,
    Ready(Change),
    /// In the list, whose reply is awaited.
    Sent,
    Made(CallReply<ChangeReply>),
    /// To be made by a call of its own; `was_sent`: perhaps made by the list already.
    Single {
        was_sent: bool,
    },
    Left,
}

impl Round {
    /// A round for so many; `ended` begins the next one.
    pub fn new(places: usize, ended: impl FnOnce() + Send + Sync + 'static) -> Round {
        let places = std::iter::repeat_with(|| Place::Preparing).take(places).collect();
        let state = Mutex::new(State { places, is_sent: false, doubt: None });
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
