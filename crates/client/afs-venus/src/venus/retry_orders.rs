//! Stores of unsaved data that a user has ordered: each goes on when its caller has given up, and the next caller gets its outcome.

use afs_rpc::boxed;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::EnvExt;

use crate::api::{TokenOwner, Unsettled};
use crate::key::Key;
use crate::retry_orders::Order;
use crate::venus::Venus;

/// Longest time for which one request waits for the store.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Limit of the calls in progress among which that of the store is looked for.
const CALLS_MAX: usize = 256;

impl Venus {
    /// Stores unsaved data now, with the token of the user who wrote it. Waits five seconds at most: then the store goes on, and
    /// the same request waits for it again.
    ///
    /// # Errors
    /// See [`Unsettled`]; those of a store are those of a close. `Stale`: others have stored a newer version.
    #[boxed]
    pub async fn retry_unsaved(&self, owner: TokenOwner, number: u64) -> Result<(), Unsettled> {
        let known = self.retry_orders.get(owner, number, self.now());
        let order = match known {
            Some(order) => order,
            None => {
                let (key, writer) = self.to_be_retried(owner, number)?;
                let (order, is_new) = self.retry_orders.begin(writer, number, key);
                if is_new {
                    self.carry_out(owner, number, order.clone());
                }
                order
            }
        };
        match self.env.timeout(WAIT_MAX, order.outcome()).await {
            Ok(outcome) => {
                self.retry_orders.forget(number);
                outcome
            }
            Err(_) => Err(Unsettled::Waiting(self.what_is_waited_for(order.key))),
        }
    }

    fn carry_out(&self, owner: TokenOwner, number: u64, order: Arc<Order>) {
        let me = self.in_background();
        self.env.spawn(Box::pin(async move {
            let outcome = me.retry_ordered(owner, number).await;
            order.end(outcome, me.now());
        }));
    }

    /// The oldest call in progress to a server of the object's volume, a store if there is one.
    fn what_is_waited_for(&self, key: Key) -> String {
        let now = self.now();
        let sites = self.location.volume_of(key).map_or(Vec::new(), |volume| volume.sites(now));
        let addresses = sites.iter().flat_map(|server| server.addresses());
        let peers: Vec<SocketAddr> = addresses.map(|address| address.peer).collect();
        let calls = self.calls.times().in_progress(CALLS_MAX);
        let to_site = calls.iter().filter(|call| peers.contains(&call.peer));
        match (to_site.min_by_key(|call| !call.operation.starts_with("Store")), peers.first()) {
            (Some(call), _) => {
                let seconds = now.saturating_since(call.begun).as_secs();
                format!("{} at {} has taken {seconds} s so far", call.operation, call.peer)
            }
            (None, Some(peer)) if sites.iter().all(|server| server.unreachable_for(now).is_some()) => {
                format!("{peer} does not reply")
            }
            (None, Some(peer)) => format!("no call to {peer} is in progress"),
            (None, None) => "its volume is not found".into(),
        }
    }
}
