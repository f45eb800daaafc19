//! Queue of promises to be given back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::key::Key;
use crate::location::Server;

/// Limit for each server; promises beyond it expire by themselves.
const GIVE_UPS_MAX: usize = 10_000;

/// Objects by server. A server is identified by its index in the table of all servers.
#[derive(Default)]
pub(super) struct GiveUps(BTreeMap<usize, (Arc<Server>, BTreeSet<Key>)>);

impl GiveUps {
    pub fn add(&mut self, place: usize, server: Arc<Server>, key: Key) {
        let (_, keys) = self.0.entry(place).or_insert_with(|| (server, BTreeSet::new()));
        if keys.len() < GIVE_UPS_MAX {
            keys.insert(key);
        }
    }

    /// Takes all entries.
    pub fn take(&mut self) -> Vec<(Arc<Server>, Vec<Key>)> {
        let give_ups = std::mem::take(&mut self.0);
        give_ups.into_values().map(|(server, keys)| (server, keys.into_iter().collect())).collect()
    }
}
