//! Prints the memory of a callback promise, counted at the allocator.
//!
//! `cargo run --release -p afs-server --example callback_memory [PROMISES [HOSTS]]`
//!
//! Promises are spread over files as in a cell of many small caches: each file is cached by one host (the
//! worst case, because every promise then pays for its file too), and then by eight.
#![allow(unsafe_code)] // Counting what is allocated means being the allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use afs_server::callbacks::{Callbacks, Grant};
use afs_server::hosts::HostId;
use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};

struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every request is passed on to the system's allocator unchanged; the counter is beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same one.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the block came from `alloc` above, which got it from the system's allocator.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<u32>());
    let promises = numbers.next().and_then(Result::ok).unwrap_or(1_000_000);
    let hosts = numbers.next().and_then(Result::ok).unwrap_or(5_000).max(1);
    println!("promises  hosts  hosts/file  bytes/promise  bytes/promise by own count");
    for sharers in [1, 8] {
        let before = IN_USE.load(Ordering::Relaxed);
        let callbacks = Callbacks::new(promises as usize * 2, 1);
        for n in 0..promises {
            callbacks.grant(fid(n / sharers), HostId(n % hosts), Grant::Single, u64::from(n / 1000));
        }
        let held = callbacks.len().max(1);
        let counted = (IN_USE.load(Ordering::Relaxed) - before) as f64 / held as f64;
        let own = callbacks.bytes() as f64 / held as f64;
        println!("{held:8}  {hosts:5}  {sharers:10}  {counted:13.1}  {own:27.1}");
    }
}

/// Files of a hundred volumes.
fn fid(n: u32) -> Fid {
    Fid::new(VolumeId(0x2000_0000 + n % 100), VnodeId(2 * (n / 100 + 1)), Uniquifier(n))
}
