//! Order in which the rights in directories were requested: a prediction of the next requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use afs_wire::ids::VolumeId;
use parking_lot::Mutex;

use crate::identity::TokenId;
use crate::key::{CellIndex, Key, Map};

/// Directories in one order, for a token and a volume.
const ORDER_MAX: usize = 20_000;
/// Pairs of token and volume with an order.
const PAIRS_MAX: usize = 1024;

/// For each token and volume, its directories ordered by the last request for their rights.
#[derive(Default)]
pub(crate) struct RightsOrder(Mutex<BTreeMap<Pair, DirectoryOrder>>);

type Pair = (TokenId, CellIndex, VolumeId);

#[derive(Default)]
struct DirectoryOrder {
    next: u64,
    by_number: BTreeMap<u64, Key>,
    numbers: Map<Key, u64>,
    /// A background call is in progress.
    is_claimed: bool,
}

/// Permission for the one background call of a token and a volume, until dropped.
pub(crate) struct RefreshClaim {
    orders: Arc<RightsOrder>,
    pair: Pair,
}

impl Drop for RefreshClaim {
    fn drop(&mut self) {
        if let Some(order) = self.orders.0.lock().get_mut(&self.pair) {
            order.is_claimed = false;
        }
    }
}

impl RightsOrder {
    /// Records that the rights in a directory were received.
    pub fn note(&self, token: TokenId, key: Key) {
        let mut orders = self.0.lock();
        let pair = (token, key.cell, key.fid.volume);
        if orders.len() >= PAIRS_MAX && !orders.contains_key(&pair) {
            // Tokens that were replaced long ago have the smallest numbers.
            orders.pop_first();
        }
        orders.entry(pair).or_default().note(key);
    }

    /// Directories requested after `key` the last time, at most `max`.
    pub fn after(&self, token: TokenId, key: Key, max: usize) -> Vec<Key> {
        let orders = self.0.lock();
        let Some(order) = orders.get(&(token, key.cell, key.fid.volume)) else { return Vec::new() };
        let Some(number) = order.numbers.get(&key) else { return Vec::new() };
        order.by_number.range(number + 1..).map(|(_, key)| *key).take(max).collect()
    }

    /// Claims the background call; `None` if one is in progress, or there is no order yet.
    pub fn claim(
        self: &Arc<Self>,
        token: TokenId,
        cell: CellIndex,
        volume: VolumeId,
    ) -> Option<RefreshClaim> {
        let pair = (token, cell, volume);
        let claimed =
            self.0.lock().get_mut(&pair).is_some_and(|order| !std::mem::replace(&mut order.is_claimed, true));
        claimed.then(|| RefreshClaim { orders: self.clone(), pair })
    }

    /// Removes the orders of tokens that no user has any more.
    pub fn retain(&self, is_known: impl Fn(TokenId) -> bool) {
        self.0.lock().retain(|(token, ..), _| is_known(*token));
    }
}

impl DirectoryOrder {
    fn note(&mut self, key: Key) {
        self.next += 1;
        if let Some(old) = self.numbers.insert(key, self.next) {
            self.by_number.remove(&old);
        }
        self.by_number.insert(self.next, key);
        if self.numbers.len() > ORDER_MAX
            && let Some((_, oldest)) = self.by_number.pop_first()
        {
            self.numbers.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use afs_wire::ids::{Fid, Uniquifier, VnodeId};

    use super::*;

    const ALICE: TokenId = TokenId(1);
    const BOB: TokenId = TokenId(2);

    fn key(n: u32) -> Key {
        Key::new(CellIndex(0), Fid::new(VolumeId(1), VnodeId(n), Uniquifier(1)))
    }

    #[test]
    fn the_directories_queried_after_another_are_known_for_each_token() {
        let orders = RightsOrder::default();
        [1, 3, 5, 1].into_iter().for_each(|n| orders.note(ALICE, key(n)));
        orders.note(BOB, key(9));
        assert_eq!(orders.after(ALICE, key(3), 9), [key(5), key(1)]);
        assert_eq!(orders.after(ALICE, key(3), 1), [key(5)]);
        assert!(orders.after(ALICE, key(9), 9).is_empty() && orders.after(BOB, key(3), 9).is_empty());
        orders.retain(|token| token == BOB);
        assert!(orders.after(ALICE, key(3), 9).is_empty());
    }

    #[test]
    fn one_call_at_a_time_is_claimed_until_it_is_dropped() {
        let orders = Arc::new(RightsOrder::default());
        let claim = |token| orders.claim(token, CellIndex(0), VolumeId(1));
        assert!(claim(ALICE).is_none());
        orders.note(ALICE, key(1));
        let held = claim(ALICE);
        assert!(held.is_some() && claim(ALICE).is_none());
        drop(held);
        assert!(claim(ALICE).is_some());
    }

    #[test]
    fn directories_and_pairs_are_bounded() {
        let orders = RightsOrder::default();
        (0..ORDER_MAX as u32 + 10).for_each(|n| orders.note(ALICE, key(n)));
        assert_eq!(orders.after(ALICE, key(10), usize::MAX).len(), ORDER_MAX - 1);
        (0..PAIRS_MAX as u64 + 10).for_each(|n| orders.note(TokenId(100 + n), key(1)));
        assert_eq!(orders.0.lock().len(), PAIRS_MAX);
    }
}
