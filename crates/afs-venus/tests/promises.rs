//! Promises at the bounds of the tables that hold them.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use afs_rpc::EnvExt;
use common::{Cell, Client};

/// Files in the tree; three times as many as the status cache holds.
const FILES: usize = 300;

/// Looks files up, one after the other, until promises have been given back twice, and half of the status cache more: of
/// what is given back by then, something is in use again.
async fn walk_into_the_giving_back(client: Client) {
    let (mut left, mut n) = (None, 0);
    while left != Some(0) {
        client.find(&format!("file{}", n % FILES)).await.unwrap();
        client.env.sleep(Duration::from_millis(1)).await;
        n += 1;
        left = match left {
            Some(left) => Some(left - 1),
            None => (client.calls("GiveUpCallBacks") > 1).then_some(50),
        };
    }
    client.env.sleep(Duration::from_secs(2)).await;
}

#[test]
fn what_is_looked_up_while_its_old_promise_is_given_back_is_not_relied_on() {
    for seed in 0..4 {
        let cell = Cell::new(seed);
        let delay = Duration::from_millis(15 + seed);
        cell.sim.set_link(afs_sim::LinkConfig {
            latency_min: delay,
            latency_max: delay,
            ..Default::default()
        });
        cell.set_limits(|limits| {
            limits.statuses_max = 100;
            limits.maintenance = Duration::from_secs(3);
        });
        let (a, b) = (cell.client(1), cell.client(2));
        let two = b.clone();
        cell.on(&b, async move {
            for n in 0..FILES {
                two.put(&format!("file{n}"), b"old").await.unwrap();
            }
        });
        cell.on(&a, walk_into_the_giving_back(a.clone()));
        let two = b.clone();
        cell.on(&b, async move {
            for n in 0..FILES {
                two.put(&format!("file{n}"), b"new and longer").await.unwrap();
            }
        });
        let one = a.clone();
        let stale = cell.on(&a, async move {
            let mut stale = Vec::new();
            // The youngest first: these are in the cache.
            for n in (0..FILES).rev() {
                let found = one.find(&format!("file{n}")).await.unwrap();
                stale.extend((found.attr.size == 3).then_some(n));
            }
            stale
        });
        assert!(stale.is_empty(), "seed {seed}: {stale:?} are shown as they were");
    }
}
