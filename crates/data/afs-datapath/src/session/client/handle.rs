//! Handles of a connection: the smallest free numbers.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Client;
use crate::frame::{HandleNumber, Message};
use crate::session::Error;

/// A capability that was presented on a connection. Clones are the same; the drive forgets it when all of them are dropped.
#[derive(Clone)]
pub struct Handle(Arc<Held>);

struct Held {
    client: Client,
    number: HandleNumber,
}

impl Handle {
    pub(super) fn new(client: &Client, message: impl FnOnce(HandleNumber) -> Message) -> Result<Self, Error> {
        let number = client.0.handles.free.lock().take().ok_or(Error::Handles)?;
        client.0.link.with(|state| state.send(&message(number)));
        Ok(Self(Arc::new(Held { client: client.clone(), number })))
    }

    pub(super) fn number(&self) -> HandleNumber {
        self.0.number
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({})", self.0.number.0)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let handle = self.number;
        // In this order: a task that obtains the number sends its requests after this message.
        self.client.0.link.with(|state| state.send(&Message::Withdraw { handle }));
        self.client.0.handles.free.lock().give(handle);
    }
}

/// The numbers that are not in use.
pub(super) struct Handles {
    free: Mutex<Free>,
}

struct Free {
    /// Numbers below `next` that are free.
    given_back: BTreeSet<u32>,
    next: u32,
    end: u32,
}

impl Handles {
    pub fn new(end: u32) -> Self {
        Self { free: Mutex::new(Free { given_back: BTreeSet::new(), next: 0, end }) }
    }
}

impl Free {
    fn take(&mut self) -> Option<HandleNumber> {
        if let Some(number) = self.given_back.pop_first() {
            return Some(HandleNumber(number));
        }
        let number = self.next;
        self.next = number.checked_add(1).filter(|next| *next <= self.end)?;
        Some(HandleNumber(number))
    }

    fn give(&mut self, number: HandleNumber) {
        self.given_back.insert(number.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_and_bounded() {
        let handles = Handles::new(2);
        let mut free = handles.free.lock();
        assert_eq!(
            (free.take(), free.take(), free.take()),
            (Some(HandleNumber(0)), Some(HandleNumber(1)), None)
        );
        free.give(HandleNumber(0));
        assert_eq!((free.take(), free.take()), (Some(HandleNumber(0)), None));
    }
}
