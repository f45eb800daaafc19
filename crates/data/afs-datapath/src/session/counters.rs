//! Counters of a drive.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::capability::Refusal;

/// What a drive has done since it began, and what it is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Connections now.
    pub connected: usize,
    /// Requests in progress now.
    pub in_progress: usize,
    /// Connections that got as far as the drive's first frame.
    pub connections: u64,
    /// Connections and requests that exceeded a bound.
    pub turned_away: u64,
    /// Connections that ended because the client violated the protocol.
    pub violations: u64,
    /// Reads that were opened.
    pub reads: u64,
    /// Stores that became tickets.
    pub stores: u64,
    /// Streams of volumes that were sent or taken to their end.
    pub streams: u64,
    /// Bytes of files sent.
    pub bytes_sent: u64,
    /// Bytes of files received.
    pub bytes_received: u64,
    /// Requests that failed for another reason than a refusal.
    pub failed: u64,
    /// Refusals, each by its place in [`Refusal::ALL`].
    pub refused: [u64; 8],
    /// Revocations of groups of objects.
    pub revocations: u64,
}

impl Counts {
    /// How often a drive refused for one reason.
    #[must_use]
    pub fn refused_for(&self, refusal: Refusal) -> u64 {
        self.refused[refusal as usize]
    }

    /// How often a drive refused for each reason, by [`Refusal::name`].
    pub fn refused_by_name(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Refusal::ALL.into_iter().map(|refusal| (refusal.name(), self.refused_for(refusal)))
    }
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub connections: Counter,
    pub turned_away: Counter,
    pub violations: Counter,
    pub reads: Counter,
    pub stores: Counter,
    pub streams: Counter,
    pub bytes_sent: Counter,
    pub bytes_received: Counter,
    pub failed: Counter,
    refused: [Counter; 8],
}

impl Counters {
    /// Returns how many there were for this reason, with this one.
    pub fn refuse(&self, refusal: Refusal) -> u64 {
        self.refused[refusal as usize].add(1)
    }

    pub fn counts(&self) -> Counts {
        Counts {
            connected: 0,
            in_progress: 0,
            connections: self.connections.get(),
            turned_away: self.turned_away.get(),
            violations: self.violations.get(),
            reads: self.reads.get(),
            stores: self.stores.get(),
            streams: self.streams.get(),
            bytes_sent: self.bytes_sent.get(),
            bytes_received: self.bytes_received.get(),
            failed: self.failed.get(),
            refused: std::array::from_fn(|place| self.refused[place].get()),
            revocations: 0,
        }
    }
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    /// Returns the sum.
    pub fn add(&self, more: u64) -> u64 {
        self.0.fetch_add(more, Ordering::Relaxed).wrapping_add(more)
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
