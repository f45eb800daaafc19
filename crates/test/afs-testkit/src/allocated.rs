//! Allocator that counts the memory held by the current thread, and the most that it held.
//!
//! A simulated world runs in one thread, so this is the memory of all its machines together: the real cost of an
//! adversary's packets, independent of the product's own counters.

#![allow(unsafe_code, reason = "a global allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, with a counter for each thread. A test program makes it its `#[global_allocator]`.
pub struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

/// Bytes that this thread has allocated and not freed; memory freed by another thread is subtracted there. 0 in a
/// program with another allocator.
#[must_use]
pub fn held() -> isize {
    HELD.try_with(Cell::get).unwrap_or(0)
}

/// The most of [`held`] since the last call of this function, which begins anew.
#[must_use]
pub fn most_since() -> isize {
    MOST.try_with(|most| most.replace(held())).unwrap_or(0)
}

fn count(bytes: isize) {
    // A thread that ends allocates after its counters have been dropped.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        MOST.try_with(|most| most.set(most.get().max(held.get())))
    });
}

fn signed(size: usize) -> isize {
    isize::try_from(size).unwrap_or(isize::MAX)
}

// SAFETY: every call goes to the system's allocator unchanged; the counter neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()));
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-signed(layout.size()));
        // SAFETY: as above; `pointer` came from `alloc`, which is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(signed(size) - signed(layout.size()));
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
