//! Memory that an attacker can make an endpoint hold, measured at the allocator: it follows the bytes that are held
//! and no number in a packet. The allocator counts for each thread.
#![allow(unsafe_code)] // Counting what is allocated means being the allocator.
#![allow(clippy::expect_used, clippy::unwrap_used)]

use crate::support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::SocketAddr;

use afs_rx::packet::{Header, PacketType};
use afs_rx::{Config, DropReason, Event, NullServer, Read};
use bytes::Bytes;
use support::script::{SERVICE, Script, from_client};
use support::toy::{INDEX, ToyServer};

struct Counting;

thread_local! {
    static IN_USE: Cell<isize> = const { Cell::new(0) };
}

/// Counts a growth of what this thread has allocated; a block that another thread gives back counts there.
fn count(growth: isize) {
    let _ = IN_USE.try_with(|held| held.set(held.get() + growth));
}

fn in_use() -> isize {
    IN_USE.with(Cell::get)
}

// SAFETY: every request is passed on to the system's allocator unchanged; the counter is beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller keeps the contract of `alloc`, which is the same one.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-(layout.size().cast_signed()));
        // SAFETY: the block came from `alloc` above, which got it from the system's allocator.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A server with an unprotected and a secured service.
fn server(change: impl FnOnce(&mut Config)) -> Script {
    let mut config = Config::default();
    change(&mut config);
    let mut script = Script::new(config);
    script.end.listen(SERVICE, vec![Box::new(NullServer), Box::new(ToyServer(7))]).unwrap();
    script
}

/// DATA of the call `index` of a flood: four to a connection, with these sequence number and security index.
fn data(index: u32, seq: u32, security_index: u8) -> Header {
    let cid = (index / 4 * 4 + 0x1_0000) | (index % 4);
    Header { cid, security_index, ..from_client(PacketType::DATA, 1, seq, seq, 0) }
}

/// Gives a packet as a slice of a large buffer, as a driver that joins datagrams would.
fn give_slice(script: &mut Script, header: Header, payload: usize) {
    let mut buffer = header.to_bytes().to_vec();
    let len = buffer.len() + payload;
    buffer.resize(64 << 10, 1);
    script.end.handle_datagram(script.now, script.peer, Bytes::from(buffer).slice(..len));
}

/// Growth of the heap in bytes since `before`.
fn grown(before: isize) -> usize {
    usize::try_from(in_use() - before).unwrap_or(0)
}

/// Memory of a call and a quarter of its connection, with room for growth of the tables.
const CALL: usize = 4096;

fn settle(script: &mut Script) {
    script.sent();
    script.events();
}

fn far_sequence_numbers() {
    const CALLS: u32 = 4096;
    let mut script = server(|_| {});
    let before = in_use();
    for index in 0..CALLS {
        for seq in [1, 2900] {
            script.give(data(index, seq, 0), b"x");
        }
        settle(&mut script);
    }
    assert_eq!(script.end.holdings().calls, CALLS as usize);
    assert!(grown(before) < CALLS as usize * CALL, "{} bytes", grown(before));
}

fn slices_of_large_buffers() {
    const CALLS: u32 = 512;
    let mut script = server(|_| {});
    let before = in_use();
    for index in 0..CALLS {
        // Waiting for a response; and out of order on an admitted call.
        give_slice(&mut script, data(index, 1, INDEX), 1000);
        script.give(data(CALLS + index, 1, 0), b"x");
        give_slice(&mut script, data(CALLS + index, 3, 0), 1000);
        settle(&mut script);
    }
    let calls = 2 * CALLS as usize;
    assert!(grown(before) < calls * (CALL + 1000), "{} bytes", grown(before));
}

fn waiting_calls() {
    let mut script = server(|config| config.receive_buffer_total = 4 << 20);
    let before = in_use();
    for index in 0..2000 {
        for seq in 1..=3 {
            script.give(data(index, seq, INDEX), &[1; 1400]);
        }
        settle(&mut script);
    }
    assert!(script.end.holdings().buffered_bytes <= 1 << 20);
    assert!(grown(before) < 2000 * CALL + (1 << 20), "{} bytes", grown(before));
    assert!(script.end.stats().drops(DropReason::BufferFull) > 0);
    // Admitted calls have the rest.
    for seq in 1..=20 {
        script.give(data(9000, seq, 0), &[2; 1400]);
    }
    let call = script.incoming();
    assert_eq!(script.read_all(call), (vec![2; 20 * 1400], Read::WouldBlock));
}

fn one_call() {
    let mut script = server(|_| {});
    let before = in_use();
    script.give(data(0, 1, 0), b"x");
    for seq in 2..=2904 {
        script.give(data(0, seq, 0), &[1; 16000]);
    }
    settle(&mut script);
    let held = script.end.holdings().buffered_bytes;
    assert!(held <= 2904 * (1444 + 96), "{held}: a window of the packets that were asked for");
    assert!(grown(before) < held + held / 2, "{} bytes for {held} counted", grown(before));
    script.give(data(1, 1, 0), &[1; 16384]);
    assert_eq!(script.end.stats().drops(DropReason::TooLong), 1);
}

fn small_packets_are_counted_with_their_places() {
    let mut script = server(|config| config.receive_buffer_total = 1 << 20);
    let before = in_use();
    for host in 0..200 {
        let from = SocketAddr::from(([198, 51, 100, host], 7001));
        for seq in 1..=200 {
            script.give_from(from, data(0, seq, 0), b"");
        }
        settle(&mut script);
    }
    assert!(grown(before) < (2 << 20) + 200 * CALL, "{} bytes", grown(before));
    assert!(script.end.holdings().buffered_bytes <= (1 << 20) + 200 * 96);
}

fn given_back() {
    let mut script = server(|_| {});
    for index in 0..1024 {
        for seq in [1, 40, 900, 2900] {
            script.give(data(index, seq, 0), &[1; 500]);
        }
        script.sent();
    }
    let full = in_use();
    for event in script.events() {
        if let Event::IncomingCall { call, .. } = event {
            script.end.abort(script.now, call, 1);
            script.end.release(script.now, call);
            script.sent();
        }
    }
    assert_eq!((script.end.holdings().buffered_bytes, script.end.holdings().calls), (0, 0));
    let left = in_use();
    assert!(full - left > 1024 * 4 * 500, "{full} then {left}");
}

#[test]
fn memory_follows_what_is_held_and_no_number_in_a_packet() {
    far_sequence_numbers();
    slices_of_large_buffers();
    waiting_calls();
    one_call();
    small_packets_are_counted_with_their_places();
    given_back();
}
