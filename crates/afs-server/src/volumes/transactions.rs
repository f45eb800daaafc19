//! Who works on which volume. Transactions are in memory and belong to no connection
//! (docs/protocol volserver.md "4. Transactions").

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::{PartitionId, UnixSeconds, VolumeId};
use afs_wire::vol::{AttachFlags, IDLE_SECONDS_MAX, TransactionId, VolumeFlags};

use super::errno;

/// Transactions at a time; tools use one or two a volume.
const TRANSACTIONS_MAX: usize = 4096;

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
    pub(super) procedure: &'static str,
    /// Made within this transaction and not published yet.
    pub(super) unborn: bool,
    /// The volume is gone.
    pub(super) deleted: bool,
    /// The volume has moved to another server.
    pub(super) moved: bool,
    /// Calls that work on it at the moment.
    pub(super) calls: u32,
}

/// All transactions of a server.
#[derive(Default)]
pub(super) struct Transactions {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    open: BTreeMap<TransactionId, Transaction>,
    last: i32,
}

impl Transactions {
    /// Opens a transaction on a volume that no other holds.
    pub(super) fn open(
        &self,
        volume: VolumeId,
        partition: PartitionId,
        attach: AttachFlags,
        procedure: &'static str,
        now: UnixSeconds,
    ) -> Result<TransactionId, AbortCode> {
        let mut table = self.lock();
        let held = |t: &Transaction| t.volume == volume && t.partition == partition;
        if table.open.values().any(held) {
            return Err(AbortCode::VOLSERVOLBUSY);
        }
        if table.open.len() >= TRANSACTIONS_MAX {
            return Err(AbortCode::VOLSERNO_MEMORY);
        }
        table.last = table.last.checked_add(1).unwrap_or(1);
        let id = TransactionId(table.last);
        let flags = VolumeFlags(0);
        let (unborn, deleted, moved, calls) = (false, false, false, 0);
        let opened = Transaction {
            id,
            volume,
            partition,
            attach,
            flags,
            created: now,
            active: now,
            procedure,
            unborn,
            deleted,
            moved,
            calls,
        };
        table.open.insert(id, opened);
        Ok(id)
    }

    /// Begins a call on a transaction, which is not ended for idleness while the call runs. ENOENT if it is not there or its
    /// volume is gone.
    pub(super) fn enter(
        &self,
        id: TransactionId,
        procedure: &'static str,
        now: UnixSeconds,
    ) -> Result<Transaction, AbortCode> {
        let mut table = self.lock();
        let found = table.open.get_mut(&id).filter(|transaction| !transaction.deleted);
        let transaction = found.ok_or(errno(Errno::ENOENT))?;
        transaction.active = now;
        transaction.procedure = procedure;
        transaction.calls += 1;
        Ok(transaction.clone())
    }

    /// Ends a call on a transaction, and notes what it did to it.
    pub(super) fn leave(&self, id: TransactionId, now: UnixSeconds, note: impl FnOnce(&mut Transaction)) {
        if let Some(transaction) = self.lock().open.get_mut(&id) {
            transaction.active = now;
            transaction.calls = transaction.calls.saturating_sub(1);
            note(transaction);
        }
    }

    /// Takes a transaction away.
    pub(super) fn close(&self, id: TransactionId) -> Option<Transaction> {
        self.lock().open.remove(&id)
    }

    /// Takes away those that nobody has worked on for long.
    pub(super) fn close_idle(&self, now: UnixSeconds) -> Vec<Transaction> {
        let idle =
            |t: &Transaction| t.calls == 0 && u64::from(now.0.saturating_sub(t.active.0)) > IDLE_SECONDS_MAX;
        let mut table = self.lock();
        let ids: Vec<_> = table.open.values().filter(|t| idle(t)).map(|t| t.id).collect();
        ids.into_iter().filter_map(|id| table.open.remove(&id)).collect()
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<Transaction> {
        self.lock().open.values().cloned().collect()
    }

    /// Whether one holds a volume.
    pub(super) fn holds(&self, volume: VolumeId, partition: PartitionId) -> bool {
        self.lock().open.values().any(|t| t.volume == volume && t.partition == partition)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V: VolumeId = VolumeId(7);
    const A: PartitionId = PartitionId(0);

    fn open(transactions: &Transactions, now: u32) -> Result<TransactionId, AbortCode> {
        transactions.open(V, A, AttachFlags::BUSY, "TransCreate", UnixSeconds(now))
    }

    #[test]
    fn one_transaction_a_volume() {
        let transactions = Transactions::default();
        let first = open(&transactions, 0).unwrap();
        assert_eq!(open(&transactions, 0), Err(AbortCode::VOLSERVOLBUSY));
        assert!(transactions.close(first).is_some() && transactions.close(first).is_none());
        assert_eq!(open(&transactions, 0), Ok(TransactionId(2)));
    }

    #[test]
    fn idle_transactions_end_and_busy_ones_do_not() {
        let transactions = Transactions::default();
        let id = open(&transactions, 0).unwrap();
        transactions.enter(id, "GetStatus", UnixSeconds(100)).unwrap();
        assert!(transactions.close_idle(UnixSeconds(10_000)).is_empty());
        transactions.leave(id, UnixSeconds(10_000), |_| ());
        assert!(transactions.close_idle(UnixSeconds(10_600)).is_empty());
        assert_eq!(transactions.close_idle(UnixSeconds(10_601)).len(), 1);
    }

    #[test]
    fn nothing_works_on_a_deleted_volume() {
        let transactions = Transactions::default();
        let id = open(&transactions, 0).unwrap();
        transactions.leave(id, UnixSeconds(0), |t| t.deleted = true);
        assert_eq!(transactions.enter(id, "GetStatus", UnixSeconds(0)).unwrap_err(), AbortCode(2));
    }
}
