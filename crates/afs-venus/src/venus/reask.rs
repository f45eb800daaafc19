//! Asking again for rights that have become old, for many directories in one call.
//!
//! Nobody tells when somebody leaves a group. So the rights of whoever has a token are asked for again before they are
//! relied on for longer than [`crate::Limits::rights_max_age`]: in the background while they are in use, so that nobody
//! waits, and together with those of the directories that were asked for right after them the last time, which are
//! most likely to be used next.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use afs_wire::fs;
use afs_wire::ids::VolumeId;

use crate::key::{CellIndex, Key, Map};
use crate::location::Volume;
use crate::lock;
use crate::tokens::TokenId;
use crate::venus::Venus;
use crate::vnode::Vnode;

/// Directories remembered in the order in which they were asked for, per token and volume.
const ORDER_MAX: usize = 20_000;
/// Pairs of token and volume for which there is an order.
const ORDERS_MAX: usize = 1024;

/// For each token and volume, its directories by when their rights were asked for last.
#[derive(Default)]
pub(super) struct Orders(Mutex<BTreeMap<Pair, Order>>);

type Pair = (TokenId, CellIndex, VolumeId);

#[derive(Default)]
struct Order {
    next: u64,
    by_turn: BTreeMap<u64, Key>,
    turns: Map<Key, u64>,
    /// A call is under way.
    asking: bool,
}

impl Orders {
    /// The rights in a directory have been told.
    pub fn note(&self, token: TokenId, key: Key) {
        let mut orders = lock(&self.0);
        let pair = (token, key.cell, key.fid.volume);
        if orders.len() >= ORDERS_MAX && !orders.contains_key(&pair) {
            // Those of tokens that were replaced long ago have the smallest numbers.
            orders.pop_first();
        }
        orders.entry(pair).or_default().note(key);
    }

    /// What was asked for after a directory the last time, at most `max`.
    fn after(&self, token: TokenId, key: Key, max: usize) -> Vec<Key> {
        let orders = lock(&self.0);
        let Some(order) = orders.get(&(token, key.cell, key.fid.volume)) else { return Vec::new() };
        let Some(turn) = order.turns.get(&key) else { return Vec::new() };
        order.by_turn.range(turn + 1..).map(|(_, key)| *key).take(max).collect()
    }

    /// Claims the one call in the background.
    fn begin(&self, pair: Pair) -> bool {
        let mut orders = lock(&self.0);
        orders.get_mut(&pair).is_some_and(|order| !std::mem::replace(&mut order.asking, true))
    }

    fn end(&self, pair: Pair) {
        if let Some(order) = lock(&self.0).get_mut(&pair) {
            order.asking = false;
        }
    }

    /// Nobody has this token any more.
    pub fn retain(&self, is_known: impl Fn(TokenId) -> bool) {
        lock(&self.0).retain(|(token, ..), _| is_known(*token));
    }
}

impl Order {
    fn note(&mut self, key: Key) {
        self.next += 1;
        if let Some(old) = self.turns.insert(key, self.next) {
            self.by_turn.remove(&old);
        }
        self.by_turn.insert(self.next, key);
        if self.turns.len() > ORDER_MAX
            && let Some((_, oldest)) = self.by_turn.pop_first()
        {
            self.turns.remove(&oldest);
        }
    }
}

/// The background call is over when this is dropped, whatever happened.
struct Asking {
    venus: Venus,
    pair: Pair,
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.venus.orders.end(self.pair);
    }
}

impl Venus {
    /// Asks again in the background.
    pub(super) fn reask_soon(&self, dir: &Arc<Vnode>, volume: &Arc<Volume>) {
        let pair = (self.token_for(volume.cell), volume.cell, volume.id);
        if !self.orders.begin(pair) {
            return;
        }
        let asking = Asking { venus: self.again(), pair };
        let (dir, volume) = (dir.clone(), volume.clone());
        self.env.spawn(Box::pin(async move {
            let asking = asking;
            asking.venus.reask_companions(&dir, &volume).await;
        }));
    }

    /// Asks for the rights in a directory that were known once, and for those of its companions that are getting old. An
    /// error is not told: whoever needs the rights will ask and see.
    pub(super) async fn reask_companions(&self, dir: &Arc<Vnode>, volume: &Arc<Volume>) {
        let token = self.token_for(volume.cell);
        if token == TokenId::NONE || !self.is_getting_old(token, dir, volume) {
            return;
        }
        let mut keys = vec![dir.key];
        let others = self.orders.after(token, dir.key, fs::FIDS_MAX - 1).into_iter();
        keys.extend(others.filter(|key| {
            self.vnodes.peek(*key).is_some_and(|other| self.is_getting_old(token, &other, volume))
        }));
        if let Err(error) = self.bulk_status(volume, &keys).await {
            tracing::debug!(%error, "rights could not be asked for again");
        }
    }

    /// Whether rights are known that do not count much longer.
    fn is_getting_old(&self, token: TokenId, dir: &Vnode, volume: &Volume) -> bool {
        let now = self.now();
        let state = dir.state();
        let known = state.rights.get(token).filter(|_| state.is_promised(volume, now));
        known.is_some_and(|known| now.saturating_since(known.asked) > self.limits.rights_max_age / 2)
    }
}
