//! Tests of the state of a connection, without streams.

use std::collections::VecDeque;
use std::task::Waker;

use afs_env::Instant;

use super::{Side, State};
use crate::frame::{DATA_MAX, Message, RequestId};
use crate::session::receiving::Receiving;
use crate::session::request::{Awaited, Reply, Request};
use crate::session::sending::Sending;
use crate::session::{Lost, Patience};

const NOW: Instant = Instant(1);

/// A drive in the middle of a read of `left` bytes, with all of a piece queued.
fn sending(state: &mut State, id: u32, left: u64, piece: usize) {
    let sending = Sending::new(left, u64::MAX);
    let request = Request::new(sending, Receiving::default(), Awaited::Nothing, NOW);
    state.begin(RequestId(id), request, NOW);
    state.push(RequestId(id), vec![id as u8; piece].into()).unwrap();
}

/// The first word behind the header of the next data frame, and its length.
fn next(state: &mut State) -> (u8, usize) {
    let mut out = VecDeque::new();
    let bytes = state.next_frames(NOW, &mut out, Waker::noop()).unwrap();
    (out[1][0], bytes)
}

#[test]
fn a_small_read_waits_for_one_frame_of_a_stream() {
    let mut state = State::new(Side::Drive, NOW);
    sending(&mut state, 1, 1 << 30, 2 * DATA_MAX);
    sending(&mut state, 2, 1 << 30, 2 * DATA_MAX);
    assert_eq!(next(&mut state), (1, DATA_MAX));
    sending(&mut state, 3, 100, 100);
    assert_eq!(next(&mut state), (3, 100));
    assert_eq!((next(&mut state).0, next(&mut state).0), (2, 1));
}

#[test]
fn messages_precede_bytes() {
    let mut state = State::new(Side::Drive, NOW);
    sending(&mut state, 1, 1 << 20, DATA_MAX);
    state.send(&Message::Alive);
    let mut out = VecDeque::new();
    state.next_frames(NOW, &mut out, Waker::noop());
    assert_eq!(out[0], Message::Alive.to_frame());
    assert_eq!(out.len(), 3, "the message, a header, its bytes");
}

#[test]
fn late_bytes_are_those_that_had_credit() {
    let mut state = State::new(Side::Client, NOW);
    let id = state.issue().unwrap();
    let receiving = Receiving::new(0, 1000);
    state.begin(id, Request::new(Sending::default(), receiving, Awaited::Announcement(5000), NOW), NOW);
    state.take_reply(id, Reply::Announced { length: 5000, file_length: 5000 }, NOW).unwrap();
    state.take_data(id, vec![0; 300].into(), NOW).unwrap();
    state.release(id);
    assert_eq!(state.take_data(id, vec![0; 700].into(), NOW), Ok(()));
    assert!(state.take_data(id, vec![0; 1].into(), NOW).is_err());
    assert!(state.take_data(RequestId(2), vec![0; 1].into(), NOW).is_err(), "a request that never began");
}

#[test]
fn a_request_whose_peer_makes_no_progress_is_given_up() {
    let patience = Patience::default();
    let mut state = State::new(Side::Drive, NOW);
    let request = Request::new(Sending::new(10, 0), Receiving::default(), Awaited::Nothing, NOW);
    state.begin(RequestId(1), request, NOW);
    state.tick(NOW + patience.stall / 2, &patience).unwrap();
    assert_eq!(state.requests(), 1);
    state.tick(NOW + patience.stall, &patience).unwrap();
    assert_eq!(state.requests(), 0);
    assert_eq!(state.tick(NOW + patience.silence, &patience), Err(Lost::Silent));
}
