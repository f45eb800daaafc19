//! Windows of open files on what lies at servers: ranges in memory, of one version, bounded for all open files together.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afs_rpc::sync::{Notified, Notify};
use afs_wire::ids::DataVersion;
use bytes::Bytes;
use parking_lot::Mutex;

use crate::bypass::slots::{Bounds, Order, Reader, Slots};
use crate::config::BypassLimits;

/// A reader that does not read in sequence gets as much as this around what it asks for: pages beside it may be next.
const SMALL: u64 = 64 << 10;
/// Smallest range that is fetched.
const PIECE_MIN: u64 = 4096;
/// So many ranges fit into a window.
const PIECES: u64 = 8;

/// The windows of all open files.
pub(crate) struct Windows {
    piece: u64,
    bounds: Bounds,
    last: AtomicU64,
    slots: Mutex<Slots>,
    /// Bytes have come, or will not come, or there is memory.
    changed: Notify,
}

/// The window of one open file, of which nothing is left when it is dropped.
pub(crate) struct Window {
    all: Arc<Windows>,
    number: u64,
}

/// What a window has at a position.
pub(crate) enum Found {
    /// The bytes from there on.
    Here(Bytes),
    /// Somebody fetches them.
    Coming,
    /// The caller is to fetch them.
    Missing(Claim),
    /// All memory is taken by what other readers wait for.
    Full,
}

/// A range of a window that its holder fetches. The window is free for others to try when this is dropped.
pub(crate) struct Claim {
    all: Arc<Windows>,
    order: Order,
    is_over: bool,
}

impl Windows {
    /// Ranges of at most `chunk_bytes` are fetched.
    pub fn new(limits: &BypassLimits, chunk_bytes: u64) -> Self {
        let window = limits.window_bytes.max(PIECES * PIECE_MIN);
        Windows {
            piece: chunk_bytes.min(window / PIECES).max(PIECE_MIN),
            bounds: Bounds { window, all: limits.bytes_max.max(window) },
            last: AtomicU64::new(0),
            slots: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// A window for one more open file.
    pub fn open(self: &Arc<Self>) -> Window {
        Window { all: self.clone(), number: self.last.fetch_add(1, Ordering::Relaxed) }
    }

    /// Ready when something has changed since this call.
    pub fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Bytes in memory, or on their way there.
    pub fn bytes(&self) -> u64 {
        self.slots.lock().used()
    }

    /// The range to fetch for one who reads `wanted` in a file of `length` bytes, which lies in it at least with its first byte.
    pub fn piece(&self, wanted: &Range<u64>, length: u64, is_sequential: bool) -> Range<u64> {
        let base = wanted.start - wanted.start % self.piece;
        let end = (base + self.piece).min(length);
        if is_sequential {
            return base..end;
        }
        let small = SMALL.min(self.piece);
        wanted.start - wanted.start % small..wanted.end.next_multiple_of(small).min(end)
    }

    /// The ranges after a position that a sequential reader will want next, as far as the file reaches.
    pub fn pieces_after(&self, at: u64, length: u64) -> impl Iterator<Item = Range<u64>> + use<> {
        let (piece, first) = (self.piece, at.next_multiple_of(self.piece));
        let starts = (0..PIECES).map(move |n| first + n * piece).take_while(move |start| *start < length);
        starts.map(move |start| start..(start + piece).min(length))
    }
}

impl Window {
    /// What is at a position. If it is missing, the caller is to fetch as much as is missing of the range around it.
    pub fn find(&self, version: DataVersion, at: u64, range: Range<u64>) -> Found {
        let reader = Reader { window: self.number, version, at };
        let mut slots = self.all.slots.lock();
        match slots.at(reader) {
            Some(Some(bytes)) => Found::Here(bytes),
            Some(None) => Found::Coming,
            None => match slots.order(reader, range, self.all.bounds) {
                Some(order) => Found::Missing(self.claim(order)),
                None => Found::Full,
            },
        }
    }

    /// A range to fetch for a reader at a position that will want it next. `None`: it is here or on its way, or memory is short.
    pub fn claim_ahead(&self, version: DataVersion, at: u64, range: Range<u64>) -> Option<Claim> {
        let reader = Reader { window: self.number, version, at };
        let order = self.all.slots.lock().order_ahead(reader, range, self.all.bounds)?;
        Some(self.claim(order))
    }

    fn claim(&self, order: Order) -> Claim {
        Claim { all: self.all.clone(), order, is_over: false }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.all.slots.lock().close(self.number);
        self.all.changed.notify_waiters();
    }
}

impl Claim {
    /// What is to be fetched.
    pub fn range(&self) -> Range<u64> {
        self.order.range.clone()
    }

    /// Of which version.
    pub fn version(&self) -> DataVersion {
        self.order.version
    }

    /// Whether nobody waited for it when it was claimed.
    pub fn is_ahead(&self) -> bool {
        self.order.is_ahead
    }

    /// All bytes of the range have come, of that version.
    pub fn fill(mut self, bytes: Bytes) {
        self.end(Some(bytes));
    }

    fn end(&mut self, came: Option<Bytes>) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.all.slots.lock().end(&self.order, came);
            self.all.changed.notify_waiters();
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.end(None);
    }
}
