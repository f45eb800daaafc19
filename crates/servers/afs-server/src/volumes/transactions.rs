//! Table of volume transactions. They are kept in memory and belong to no connection (docs/protocol
//! volserver.md "4. Transactions").

use std::collections::BTreeMap;
use std::sync::Arc;

use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::{PartitionId, UnixSeconds, VolumeId};
use afs_wire::vol::{AttachFlags, IDLE_SECONDS_MAX, TransactionId, VolumeFlags};
use parking_lot::{Mutex, MutexGuard};

use super::errno;
use crate::leases::Bar;
use crate::volume_states::Site;

/// Most transactions at a time; tools use one or two a volume.
const TRANSACTIONS_MAX: usize = 4096;
/// Bound of the first transaction id of a process: half of all positive ids.
const FIRST_MAX: u64 = 1 << 30;

/// A time, by both clocks of a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// Wall clock, as shown to tools.
    pub(super) wall: UnixSeconds,
    /// Seconds of a monotonic clock, for idle times.
    pub(super) clock: u64,
}

/// One transaction.
#[derive(Clone, Debug)]
pub(super) struct Transaction {
    pub(super) id: TransactionId,
    pub(super) volume: VolumeId,
    pub(super) partition: PartitionId,
    pub(super) attach: AttachFlags,
    pub(super) flags: VolumeFlags,
    pub(super) created: UnixSeconds,
    pub(super) active: UnixSeconds,
    /// Start of the idle time, in seconds of the monotonic clock.
    idle_since: u64,
    pub(super) procedure: &'static str,
    /// Whether it created the volume, which is removed with it unless published.
    pub(super) made: bool,
    /// Whether the volume was deleted.
    pub(super) deleted: bool,
    /// Whether it was ended while calls were still running; it is removed when the last of them returns.
    pub(super) ended: bool,
    /// Calls that are running on it.
    pub(super) calls: u32,
    /// As long as it lasts no directory of the volume is lent.
    pub(super) unlent: Option<Arc<Bar>>,
}

impl Transaction {
    pub(super) fn site(&self) -> Site {
        Site { volume: self.volume, partition: self.partition }
    }
}

/// All transactions of a server.
pub(super) struct Transactions {
    table: Mutex<Table>,
}

struct Table {
    open: BTreeMap<TransactionId, Transaction>,
    /// The id given out last.
    last: i32,
}

impl Transactions {
    /// An empty table. `seed` picks the first id: a tool that knows transactions of the previous process must
    /// not close or delete another's volume under a reused id.
    pub(super) fn new(seed: u64) -> Self {
        let last = (seed % FIRST_MAX) as i32;
        Self { table: Mutex::new(Table { open: BTreeMap::new(), last }) }
    }

    /// Opens a transaction on a volume that no other holds.
    pub(super) fn open(
        &self,
        site: Site,
        attach: AttachFlags,
        procedure: &'static str,
        now: Moment,
    ) -> Result<TransactionId, AbortCode> {
        let mut table = self.lock();
        if table.open.values().any(|open| open.site() == site) {
            return Err(AbortCode::VOLSERVOLBUSY);
        }
        if table.open.len() >= TRANSACTIONS_MAX {
            return Err(AbortCode::VOLSERNO_MEMORY);
        }
        let id = table.next_id();
        let opened = Transaction {
            id,
            volume: site.volume,
            partition: site.partition,
            attach,
            flags: VolumeFlags(0),
            created: now.wall,
            active: now.wall,
            idle_since: now.clock,
            procedure,
            made: false,
            deleted: false,
            ended: false,
            calls: 0,
            unlent: None,
        };
        table.open.insert(id, opened);
        Ok(id)
    }

    /// Begins a call on a transaction, which does not become idle while the call runs. ENOENT if there is no
    /// such transaction or its volume was deleted.
    pub(super) fn enter(
        &self,
        id: TransactionId,
        procedure: &'static str,
        now: Moment,
    ) -> Result<Transaction, AbortCode> {
        let mut table = self.lock();
        let found = table.open.get_mut(&id).filter(|transaction| !transaction.deleted && !transaction.ended);
        let transaction = found.ok_or(errno(Errno::ENOENT))?;
        (transaction.active, transaction.idle_since) = (now.wall, now.clock);
        transaction.procedure = procedure;
        transaction.calls += 1;
        Ok(transaction.clone())
    }

    /// Updates a transaction with what a call did to it.
    pub(super) fn note(&self, id: TransactionId, note: impl FnOnce(&mut Transaction)) {
        if let Some(transaction) = self.lock().open.get_mut(&id) {
            note(transaction);
        }
    }

    /// Ends a call on a transaction. Returns the transaction if it was ended meanwhile and this was the last
    /// call on it.
    pub(super) fn leave(&self, id: TransactionId, now: Moment) -> Option<Transaction> {
        let mut table = self.lock();
        let transaction = table.open.get_mut(&id)?;
        (transaction.active, transaction.idle_since) = (now.wall, now.clock);
        transaction.calls = transaction.calls.saturating_sub(1);
        if transaction.ended && transaction.calls == 0 { table.open.remove(&id) } else { None }
    }

    /// Ends a transaction: `None` if there is none, `Some(None)` if calls are still running on it.
    pub(super) fn close(&self, id: TransactionId) -> Option<Option<Transaction>> {
        let mut table = self.lock();
        let transaction = table.open.get_mut(&id).filter(|transaction| !transaction.ended)?;
        if transaction.calls > 0 {
            transaction.ended = true;
            return Some(None);
        }
        Some(table.open.remove(&id))
    }

    /// Ends transactions that have been idle for long. They stay in the table, closed, until
    /// [`Transactions::forget`]: no other call gets the volume while it is being released.
    pub(super) fn take_idle(&self, now: Moment) -> Vec<Transaction> {
        let idle = |t: &Transaction| {
            t.calls == 0 && !t.ended && now.clock.saturating_sub(t.idle_since) > IDLE_SECONDS_MAX
        };
        let mut table = self.lock();
        let mut taken = Vec::new();
        for transaction in table.open.values_mut().filter(|transaction| idle(transaction)) {
            transaction.ended = true;
            taken.push(transaction.clone());
        }
        taken
    }

    /// Removes a transaction for good.
    pub(super) fn forget(&self, id: TransactionId) {
        self.lock().open.remove(&id);
    }

    /// All transactions.
    pub(super) fn all(&self) -> Vec<Transaction> {
        self.lock().open.values().cloned().collect()
    }

    /// Whether a transaction holds a volume.
    pub(super) fn holds(&self, site: Site) -> bool {
        self.lock().open.values().any(|open| open.site() == site)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }
}

impl Table {
    /// An id that no open transaction has: there are fewer transactions than ids.
    fn next_id(&mut self) -> TransactionId {
        loop {
            self.last = self.last.checked_add(1).unwrap_or(1);
            let id = TransactionId(self.last);
            if !self.open.contains_key(&id) {
                return id;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Site = Site { volume: VolumeId(7), partition: PartitionId(0) };

    fn at(clock: u32) -> Moment {
        Moment { wall: UnixSeconds(1_700_000_000 + clock), clock: clock.into() }
    }

    fn open(transactions: &Transactions, now: u32) -> Result<TransactionId, AbortCode> {
        transactions.open(PLACE, AttachFlags::BUSY, "TransCreate", at(now))
    }

    #[test]
    fn one_transaction_a_volume() {
        let transactions = Transactions::new(0);
        let first = open(&transactions, 0).unwrap();
        assert_eq!(open(&transactions, 0), Err(AbortCode::VOLSERVOLBUSY));
        let elsewhere = Site { partition: PartitionId(1), ..PLACE };
        assert!(transactions.open(elsewhere, AttachFlags::BUSY, "", at(0)).is_ok());
        assert!(matches!(transactions.close(first), Some(Some(_))));
        assert!(transactions.close(first).is_none());
        assert_eq!(open(&transactions, 0), Ok(TransactionId(3)));
    }

    #[test]
    fn beyond_the_bound_none_begins_until_one_has_ended() {
        let transactions = Transactions::new(0);
        let site = |volume| Site { volume: VolumeId(volume), ..PLACE };
        let open = |volume| transactions.open(site(volume), AttachFlags::BUSY, "", at(0));
        let first = open(1).unwrap();
        (2..=TRANSACTIONS_MAX as u32).for_each(|volume| {
            open(volume).unwrap();
        });
        assert_eq!(open(9999), Err(AbortCode::VOLSERNO_MEMORY));
        transactions.close(first);
        assert!(open(9999).is_ok());
    }

    #[test]
    fn numbers_begin_anew_behind_the_last_and_none_is_given_twice() {
        let transactions = Transactions::new(0);
        transactions.lock().last = i32::MAX - 1;
        let site = |volume| Site { volume: VolumeId(volume), ..PLACE };
        let open = |volume| transactions.open(site(volume), AttachFlags::BUSY, "", at(0)).unwrap().0;
        assert_eq!([open(1), open(2)], [i32::MAX, 1]);
        transactions.lock().last = i32::MAX - 1;
        assert_eq!(open(3), 2, "the others are in use");
        assert!(Transactions::new(u64::MAX).open(PLACE, AttachFlags::BUSY, "", at(0)).unwrap().0 > 0);
    }

    #[test]
    fn idle_transactions_end_and_busy_ones_do_not() {
        let transactions = Transactions::new(0);
        let id = open(&transactions, 0).unwrap();
        transactions.enter(id, "GetStatus", at(100)).unwrap();
        assert!(transactions.take_idle(at(10_000)).is_empty());
        assert!(transactions.leave(id, at(10_000)).is_none());
        assert!(transactions.take_idle(at(10_600)).is_empty());
        assert_eq!(transactions.take_idle(at(10_601)).len(), 1);
        assert_eq!(transactions.enter(id, "Dump", at(0)).unwrap_err(), AbortCode(2));
        assert_eq!(open(&transactions, 0), Err(AbortCode::VOLSERVOLBUSY), "it is still being put away");
        transactions.forget(id);
        assert!(open(&transactions, 0).is_ok());
    }

    #[test]
    fn a_jump_of_the_wall_clock_ends_no_transaction() {
        let transactions = Transactions::new(0);
        open(&transactions, 0).unwrap();
        assert!(transactions.take_idle(Moment { wall: UnixSeconds(u32::MAX), clock: 100 }).is_empty());
        assert_eq!(transactions.take_idle(Moment { wall: UnixSeconds(0), clock: 601 }).len(), 1);
    }

    #[test]
    fn a_transaction_ended_in_the_middle_of_a_call_is_removed_when_the_call_returns() {
        let transactions = Transactions::new(0);
        let id = open(&transactions, 0).unwrap();
        transactions.enter(id, "Dump", at(0)).unwrap();
        assert!(matches!(transactions.close(id), Some(None)));
        assert!(transactions.close(id).is_none());
        assert_eq!(transactions.enter(id, "GetStatus", at(0)).unwrap_err(), AbortCode(2));
        assert!(transactions.holds(PLACE));
        assert!(transactions.leave(id, at(0)).is_some());
        assert!(!transactions.holds(PLACE));
    }

    #[test]
    fn no_call_works_on_a_deleted_volume() {
        let transactions = Transactions::new(0);
        let id = open(&transactions, 0).unwrap();
        transactions.note(id, |t| t.deleted = true);
        assert_eq!(transactions.enter(id, "GetStatus", at(0)).unwrap_err(), AbortCode(2));
    }
}
