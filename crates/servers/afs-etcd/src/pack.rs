//! Packing of large transactions: etcd limits the operations of a transaction level by level, so many
//! operations are nested as transactions within transactions.

use crate::messages::{Operation, TxnRequest};

/// Most operations of one level. Three levels of so many stay below etcd's default of 128 on every path.
const LEVEL_MAX: usize = 40;

/// The same operations in at most [`LEVEL_MAX`] at each level.
pub(crate) fn pack(mut operations: Vec<Operation>) -> Vec<Operation> {
    while operations.len() > LEVEL_MAX {
        let mut packed = Vec::with_capacity(operations.len() / LEVEL_MAX + 1);
        let mut rest = operations.into_iter().peekable();
        while rest.peek().is_some() {
            let success = rest.by_ref().take(LEVEL_MAX).collect();
            packed.push(Operation::RequestTxn(TxnRequest { success, ..TxnRequest::default() }));
        }
        operations = packed;
    }
    operations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{Blob, DeleteRequest};

    fn depth(operations: &[Operation]) -> (usize, usize) {
        assert!(operations.len() <= LEVEL_MAX);
        let below = operations.iter().map(|operation| match operation {
            Operation::RequestTxn(txn) => depth(&txn.success),
            _ => (0, 1),
        });
        below.fold((0, 0), |(deep, count), (below, more)| (deep.max(below + 1), count + more))
    }

    #[test]
    fn no_entry_is_lost_and_no_level_is_too_wide() {
        let operation = || Operation::RequestDeleteRange(DeleteRequest { key: Blob(vec![1]) });
        for (count, levels) in [(1, 1), (40, 1), (41, 2), (1600, 2), (1601, 3), (20_000, 3)] {
            let packed = pack((0..count).map(|_| operation()).collect());
            assert_eq!(depth(&packed), (levels, count));
        }
    }
}
