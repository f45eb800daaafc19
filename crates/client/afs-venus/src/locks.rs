//! Table of the advisory locks that processes of this machine hold on an object.

use afs_rpc::Instant;

use crate::api::{LockHolder, LockKind, LockRange};
use crate::identity::TokenId;
use crate::lock_queue::{Claim, LockQueue, Ticket};

/// Locks of one object, in the order in which they were taken.
#[derive(Default)]
pub(crate) struct LockTable {
    held: Vec<Claim>,
    /// The strongest kind that was taken since no lock was held.
    strongest: Option<LockKind>,
    /// Kind of the lock held at the server for all of them.
    pub at_server: Option<LockKind>,
    /// When that lock was last taken or extended.
    pub extended: Option<Instant>,
    /// Number of the last break before that.
    pub extended_since: u64,
    /// True if the server is known to hold no other lock for this client: none of an earlier client that crashed, and
    /// none whose release or request got no reply.
    pub is_server_known: bool,
    /// The token with which that lock was taken.
    pub taken_with: TokenId,
    /// True while it is kept under a lease, and no lock is held here.
    pub is_kept: bool,
    /// Who waits for a lock.
    pub queue: LockQueue,
}

/// All locks that were held at some moment.
pub(crate) struct HeldLocks {
    held: Vec<Claim>,
    strongest: Option<LockKind>,
}

/// Limit of locks of one object on one machine; beyond it, ENOLCK.
const HELD_MAX: usize = 10_000;

impl LockTable {
    /// Records that the lock at the server was taken or extended, requested at `now`, after break number `since`.
    pub fn extend(&mut self, now: Instant, since: u64) {
        (self.extended, self.extended_since) = (Some(now), since);
    }

    /// The owners whose locks conflict with a claim.
    pub fn owners_in_the_way(&self, claim: &Claim) -> Vec<u64> {
        self.held.iter().filter(|held| held.conflicts_with(claim)).map(|held| held.owner).collect()
    }

    /// The first lock in the file, by its range, of another owner that conflicts.
    pub fn conflict(&self, owner: u64, range: LockRange, kind: LockKind) -> Option<LockHolder> {
        let claim = Claim { owner, pid: 0, range, kind };
        let first = self.held.iter().filter(|held| held.conflicts_with(&claim)).min_by_key(|h| h.range.first);
        first.map(|held| LockHolder { kind: held.kind, range: held.range, pid: held.pid })
    }

    /// Whether a lock, or a process that was called before, is in the way of a claim; `number`: its own in the queue.
    pub fn is_in_the_way(&self, number: Option<u64>, claim: &Claim) -> bool {
        self.held.iter().any(|held| held.conflicts_with(claim)) || self.queue.keeps_away(number, claim)
    }

    /// A process of the user with this token waits from now on; `None` if too many do.
    pub fn join(&mut self, claim: Claim, token: TokenId) -> Option<Ticket> {
        let ticket = self.queue.join(claim, token)?;
        self.queue.call(&self.held);
        Some(ticket)
    }

    /// A process that has waited has its lock, or gives up.
    pub fn leave(&mut self, number: u64) {
        self.queue.leave(number);
        self.queue.call(&self.held);
    }

    /// Whether the lock at the server, which no process here holds any more, goes to one that waits here.
    pub fn passes_on(&mut self) -> bool {
        let is_free = self.held.is_empty() && !self.is_kept;
        let at_server = self.at_server.filter(|_| is_free);
        at_server.is_some_and(|kind| self.queue.pass_on(kind, self.taken_with))
    }

    /// Takes a lock, in place of the owner's locks in its range, and as one with those of its kind that touch it. `false` if there are
    /// too many.
    pub fn take(&mut self, claim: &Claim) -> bool {
        self.remove(claim.owner, claim.range);
        if self.held.len() >= HELD_MAX {
            return false;
        }
        let mut whole = claim.clone();
        self.held.retain(|held| {
            let touches =
                held.owner == claim.owner && held.kind == claim.kind && held.range.touches(&claim.range);
            if touches {
                whole.range.first = whole.range.first.min(held.range.first);
                whole.range.last = whole.range.last.max(held.range.last);
            }
            !touches
        });
        self.held.push(whole);
        let kind = claim.kind;
        self.strongest = self.strongest.filter(|strongest| *strongest == LockKind::Write).or(Some(kind));
        true
    }

    /// Whether the release of a range would leave more locks than may be held: it is in the middle of one.
    pub fn is_full_for_release(&self, owner: u64, range: LockRange) -> bool {
        let is_split = |held: &Claim| {
            held.owner == owner && held.range.first < range.first && range.last < held.range.last
        };
        self.held.len() >= HELD_MAX && self.held.iter().any(is_split)
    }

    /// Releases an owner's locks in a range; parts outside of it are kept. Calls who waits for it.
    pub fn release(&mut self, owner: u64, range: LockRange) {
        self.remove(owner, range);
        self.strongest = self.strongest.filter(|_| !self.held.is_empty());
        self.queue.call(&self.held);
    }

    fn remove(&mut self, owner: u64, range: LockRange) {
        let mut rest = Vec::new();
        self.held.retain(|held| {
            if held.owner != owner || !held.range.overlaps(&range) {
                return true;
            }
            if held.range.first < range.first {
                rest.push(Claim {
                    range: LockRange { first: held.range.first, last: range.first - 1 },
                    ..held.clone()
                });
            }
            if held.range.last > range.last {
                rest.push(Claim {
                    range: LockRange { first: range.last + 1, last: held.range.last },
                    ..held.clone()
                });
            }
            false
        });
        self.held.append(&mut rest);
    }

    /// The lock needed at the server: on the whole file, since the server knows no ranges, and of the strongest kind taken
    /// here. A write lock is not converted to a read lock as long as any lock is held: a process may rely on what it read
    /// under it.
    pub fn wanted_at_server(&self) -> Option<LockKind> {
        self.strongest.filter(|_| !self.held.is_empty())
    }

    /// Records that the server granted a lock of that kind for the user of a token, requested at `now`, after break number
    /// `since`.
    pub fn hold_at_server(&mut self, kind: LockKind, token: TokenId, now: Instant, since: u64) {
        (self.at_server, self.is_server_known) = (Some(kind), true);
        (self.taken_with, self.is_kept) = (token, false);
        self.queue.taken_at_server();
        self.extend(now, since);
    }

    /// The lock at the server has ended, or counts as ended.
    pub fn end_at_server(&mut self) {
        (self.at_server, self.is_kept) = (None, false);
    }

    /// All locks, for [`LockTable::restore`] if a change fails.
    pub fn held(&self) -> HeldLocks {
        HeldLocks { held: self.held.clone(), strongest: self.strongest }
    }

    /// Restores locks returned by [`LockTable::held`].
    pub fn restore(&mut self, before: HeldLocks) {
        (self.held, self.strongest) = (before.held, before.strongest);
        self.queue.call(&self.held);
    }

    /// Removes all locks, after the lock at the server was lost.
    pub fn lose(&mut self) {
        let queue = std::mem::take(&mut self.queue);
        *self = LockTable { queue, ..LockTable::default() };
        self.queue.call(&self.held);
    }

    /// The locks and their holders.
    pub fn holders(&self) -> impl Iterator<Item = LockHolder> {
        self.held.iter().map(|held| LockHolder { kind: held.kind, range: held.range, pid: held.pid })
    }

    pub fn is_empty(&self) -> bool {
        self.held.is_empty() && self.at_server.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u64, last: u64) -> LockRange {
        LockRange { first, last }
    }

    fn take(table: &mut LockTable, owner: u64, pid: u32, range: LockRange, kind: LockKind) -> bool {
        table.take(&Claim { owner, pid, range, kind })
    }

    #[test]
    fn readers_share_and_writers_do_not() {
        let mut table = LockTable::default();
        assert!(take(&mut table, 1, 100, LockRange::WHOLE, LockKind::Read));
        assert_eq!(table.conflict(2, range(5, 9), LockKind::Read), None);
        let holder = table.conflict(2, range(5, 9), LockKind::Write).unwrap();
        assert_eq!((holder.pid, holder.kind), (100, LockKind::Read));
        assert_eq!(table.conflict(1, range(5, 9), LockKind::Write), None);
    }

    #[test]
    fn a_release_in_the_middle_leaves_both_ends() {
        let mut table = LockTable::default();
        take(&mut table, 1, 1, range(0, 99), LockKind::Write);
        table.release(1, range(40, 59));
        assert!(table.conflict(2, range(0, 39), LockKind::Read).is_some());
        assert!(table.conflict(2, range(40, 59), LockKind::Read).is_none());
        assert!(table.conflict(2, range(60, 60), LockKind::Read).is_some());
    }

    #[test]
    fn locks_are_bounded_whether_they_are_taken_or_left_by_a_release() {
        let mut table = LockTable::default();
        let one = |n: usize| range(2 * n as u64, 2 * n as u64);
        assert!((0..HELD_MAX).all(|n| take(&mut table, 1, 1, one(n), LockKind::Write)));
        assert!(!take(&mut table, 1, 1, one(HELD_MAX), LockKind::Write), "ENOLCK");
        table = LockTable::default();
        take(&mut table, 1, 1, LockRange::WHOLE, LockKind::Write);
        let release = |n: &usize| {
            let fits = !table.is_full_for_release(1, range(2 * *n as u64 + 1, 2 * *n as u64 + 1));
            fits.then(|| table.release(1, range(2 * *n as u64 + 1, 2 * *n as u64 + 1))).is_some()
        };
        assert_eq!((0..2 * HELD_MAX).filter(release).count(), HELD_MAX - 1);
        assert_eq!(table.held.len(), HELD_MAX);
        assert!(!table.is_full_for_release(1, LockRange::WHOLE), "that frees all");
    }

    #[test]
    fn a_query_names_the_first_lock_of_the_file_in_the_way_and_its_whole_length() {
        let mut table = LockTable::default();
        let seen = |table: &LockTable, first| {
            let holder = table.conflict(2, range(first, u64::MAX), LockKind::Write).unwrap();
            (holder.kind, holder.range)
        };
        take(&mut table, 1, 1, range(10, 14), LockKind::Write);
        take(&mut table, 1, 1, range(1, 4), LockKind::Read);
        assert_eq!(seen(&table, 0), (LockKind::Read, range(1, 4)));
        assert_eq!(seen(&table, 5), (LockKind::Write, range(10, 14)));
        // Locks of one kind that touch are one lock, on either side; the others stay.
        take(&mut table, 1, 1, range(7, 9), LockKind::Write);
        take(&mut table, 1, 1, range(5, 5), LockKind::Write);
        take(&mut table, 1, 1, range(6, 6), LockKind::Write);
        take(&mut table, 3, 3, range(15, 15), LockKind::Write);
        assert_eq!(seen(&table, 0), (LockKind::Read, range(1, 4)));
        assert_eq!(seen(&table, 5), (LockKind::Write, range(5, 14)));
        table.release(1, range(0, 8));
        assert_eq!(seen(&table, 0), (LockKind::Write, range(9, 14)));
    }

    #[test]
    fn the_server_holds_the_strongest_lock_until_the_last_range_is_free() {
        let mut table = LockTable::default();
        take(&mut table, 1, 1, range(0, 9), LockKind::Read);
        assert_eq!(table.wanted_at_server(), Some(LockKind::Read));
        take(&mut table, 2, 1, range(20, 29), LockKind::Write);
        assert_eq!(table.wanted_at_server(), Some(LockKind::Write));
        table.at_server = Some(LockKind::Write);
        table.release(2, LockRange::WHOLE);
        assert_eq!(table.wanted_at_server(), Some(LockKind::Write));
        table.release(1, LockRange::WHOLE);
        assert_eq!(table.wanted_at_server(), None);
        table.at_server = None;
        assert!(table.is_empty());
    }

    #[test]
    fn a_kept_lock_is_needed_as_strong_as_it_was_taken_since() {
        let mut table = LockTable::default();
        take(&mut table, 1, 1, range(0, 9), LockKind::Write);
        table.hold_at_server(LockKind::Write, TokenId::NONE, Instant::ZERO, 0);
        take(&mut table, 1, 1, range(0, 9), LockKind::Read);
        assert_eq!(table.wanted_at_server(), Some(LockKind::Write), "it became one to read");
        table.release(1, LockRange::WHOLE);
        assert_eq!(table.wanted_at_server(), None);
        take(&mut table, 1, 1, range(0, 9), LockKind::Read);
        assert_eq!(table.wanted_at_server(), Some(LockKind::Read));
        let before = table.held();
        take(&mut table, 2, 1, range(20, 29), LockKind::Write);
        table.restore(before);
        assert_eq!(table.wanted_at_server(), Some(LockKind::Read));
    }
}
