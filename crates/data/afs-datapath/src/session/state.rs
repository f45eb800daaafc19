//! State of one connection, without I/O and clock: requests, and what is to be sent.
//!
//! The driver tells it what has arrived and asks it for frames; the futures of requests ask it for what concerns them. Wakers that
//! are due are kept in a list until the lock on the state is released.

mod input;
mod output;
mod requests;
#[cfg(test)]
mod tests;
mod time;

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

use afs_env::Instant;
use bytes::Bytes;

use super::Lost;
use super::request::Request;
use super::turns::Turns;
use crate::frame::RequestId;

/// Bytes of messages that wait to be sent before an end stops reading: a peer that reads no messages cannot make it
/// buffer more.
const MESSAGES_MAX: usize = 64 << 10;

/// State of one end of a connection.
#[derive(Debug)]
pub(super) struct State {
    side: Side,
    messages: VecDeque<Bytes>,
    messages_len: usize,
    requests: BTreeMap<RequestId, Request>,
    turns: Turns,
    /// Bytes that may still arrive for requests that are over: what the peer had credit for when they ended.
    late: u64,
    /// The latest request of the client.
    latest: RequestId,
    lost: Option<Lost>,
    /// Whether this end wants to close the connection once everything is sent.
    is_closing: bool,
    heard: Instant,
    told: Instant,
    /// When there was a request last.
    asked: Instant,
    driver: Option<Waker>,
    woken: Vec<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Client,
    Drive,
}

impl State {
    pub fn new(side: Side, now: Instant) -> Self {
        Self {
            side,
            messages: VecDeque::new(),
            messages_len: 0,
            requests: BTreeMap::new(),
            turns: Turns::default(),
            late: 0,
            latest: RequestId::default(),
            lost: None,
            is_closing: false,
            heard: now,
            told: now,
            asked: now,
            driver: None,
            woken: Vec::new(),
        }
    }

    /// Wakers to be called without the lock.
    pub fn take_woken(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.woken)
    }

    pub fn lost(&self) -> Option<&Lost> {
        self.lost.as_ref()
    }

    pub fn requests(&self) -> usize {
        self.requests.len()
    }

    pub fn latest(&self) -> RequestId {
        self.latest
    }

    pub fn is_closing(&self) -> bool {
        self.is_closing
    }

    fn wake(&mut self, id: RequestId) {
        let waker = self.requests.get_mut(&id).and_then(Request::take_waker);
        self.woken.extend(waker);
    }

    fn wake_driver(&mut self) {
        let driver = self.driver.take();
        self.woken.extend(driver);
    }
}
