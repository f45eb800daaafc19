//! Fetches of file data in progress at a scripted server, which a test may hold and falsify.

use std::collections::BTreeMap;
use std::sync::Mutex;

use afs_rpc::sync::Notify;
use afs_wire::error::AbortCode;
use afs_wire::ids::DataVersion;

/// How a fetch is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// With the file as it was when the call came.
    AsBegun,
    /// With the file as it is now.
    AsItIsNow,
    Abort(AbortCode),
    /// With so many bytes less than there are.
    Shorter(usize),
    /// With so many bytes more.
    Longer(usize),
    /// With the right bytes, as if they were of that version.
    OfVersion(DataVersion),
}

/// The fetches.
#[derive(Default)]
pub struct Fetches {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    is_holding: bool,
    /// Answers for positions, each of which is given once.
    once: BTreeMap<u64, Answer>,
    /// Answers for positions that are given every time.
    always: BTreeMap<u64, Answer>,
    /// Positions of the fetches that are held.
    held: Vec<u64>,
    /// Positions of all fetches so far.
    begun: Vec<u64>,
    /// The most fetches that were held at a time.
    most: usize,
}

impl Fetches {
    /// Holds all fetches from now on, or no more.
    pub fn hold(&self, is_holding: bool) {
        let mut state = self.state.lock().unwrap();
        state.is_holding = is_holding;
        if !is_holding {
            state.held.clear();
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Answers a held fetch.
    pub fn release(&self, position: u64) {
        self.state.lock().unwrap().held.retain(|held| *held != position);
        self.changed.notify_waiters();
    }

    /// Determines the answer to the next fetch at a position.
    pub fn answer_once(&self, position: u64, answer: Answer) {
        self.state.lock().unwrap().once.insert(position, answer);
    }

    /// Determines the answer to all fetches at a position.
    pub fn answer(&self, position: u64, answer: Answer) {
        self.state.lock().unwrap().always.insert(position, answer);
    }

    /// Positions of the fetches that are held, sorted.
    pub fn waiting(&self) -> Vec<u64> {
        let mut held = self.state.lock().unwrap().held.clone();
        held.sort_unstable();
        held
    }

    /// The most fetches that were held at a time.
    pub fn most(&self) -> usize {
        self.state.lock().unwrap().most
    }

    /// How often there was a fetch at a position.
    pub fn begun(&self, position: u64) -> usize {
        self.state.lock().unwrap().begun.iter().filter(|begun| **begun == position).count()
    }

    /// Waits until a fetch may be answered, and says how.
    pub(super) async fn held(&self, position: u64) -> Answer {
        {
            let mut state = self.state.lock().unwrap();
            state.begun.push(position);
            if state.is_holding {
                state.held.push(position);
            }
            state.most = state.most.max(state.held.len());
        }
        loop {
            let changed = self.changed.notified();
            if !self.state.lock().unwrap().held.contains(&position) {
                break;
            }
            changed.await;
        }
        let mut state = self.state.lock().unwrap();
        let answer = state.once.remove(&position).or(state.always.get(&position).copied());
        answer.unwrap_or(Answer::AsBegun)
    }
}
