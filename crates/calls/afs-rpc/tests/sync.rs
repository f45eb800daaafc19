//! Tests of the synchronisation primitives: they are fair, and a cancelled waiter loses no notification.

// Tests and their helpers may panic.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::future::pending;
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::future::{Either, join, join_all, select, select_all, yield_now};
use afs_rpc::sync::{Mutex, Notify, Semaphore, oneshot};
use afs_sim::OneHost;

#[test]
fn a_semaphore_serves_in_order_and_passes_on_what_a_waiter_left() {
    let world = OneHost::new(1);
    let env = world.env();
    let order = Arc::new(StdMutex::new(Vec::new()));
    let semaphore = Arc::new(Semaphore::new(1));
    let held = semaphore.try_acquire().unwrap();
    let left = env.spawn_with_result({
        let (semaphore, env) = (semaphore.clone(), env.clone());
        async move { env.timeout(Duration::from_secs(1), semaphore.acquire()).await.is_err() }
    });
    let done: Vec<_> = (0..3)
        .map(|i| {
            let (semaphore, order) = (semaphore.clone(), order.clone());
            env.spawn_with_result(async move {
                let _permit = semaphore.acquire().await;
                order.lock().unwrap().push(i);
                yield_now().await;
            })
        })
        .collect();
    assert!(world.run(left).unwrap(), "the first waiter gives up");
    drop(held);
    world.run(join_all(done));
    assert_eq!(*order.lock().unwrap(), [0, 1, 2]);
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn a_permit_given_to_a_waiter_that_is_gone_goes_to_the_next() {
    let semaphore = Arc::new(Semaphore::new(1));
    let held = semaphore.try_acquire();
    let mut first = Box::pin(semaphore.acquire());
    let mut second = Box::pin(semaphore.acquire());
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(first.as_mut().poll(&mut cx).is_pending());
    assert!(second.as_mut().poll(&mut cx).is_pending());
    drop(held);
    assert_eq!(semaphore.available_permits(), 0, "it belongs to the first by now");
    assert!(semaphore.try_acquire().is_err(), "nobody overtakes");
    drop(first);
    assert!(second.as_mut().poll(&mut cx).is_ready());
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn a_mutex_keeps_its_value_across_waiting_holders() {
    let world = OneHost::new(2);
    let env = world.env();
    let total = Arc::new(Mutex::new(0_u64));
    let adders: Vec<_> = (0..50)
        .map(|i| {
            let (total, env2) = (total.clone(), env.clone());
            env.spawn_with_result(async move {
                let mut guard = total.lock().await;
                let before = *guard;
                env2.sleep(Duration::from_millis(i % 3)).await;
                *guard = before + i;
            })
        })
        .collect();
    world.run(join_all(adders));
    assert_eq!(*total.try_lock().unwrap(), (0..50).sum::<u64>());
}

#[test]
fn a_notification_between_making_and_awaiting_is_not_lost() {
    let world = OneHost::new(3);
    let notify = Arc::new(Notify::new());
    let early = notify.clone().notified_owned();
    notify.notify_waiters();
    world.run(early);
    let late = notify.clone().notified_owned();
    let env = world.env();
    let missed = world.run(async move { env.timeout(Duration::from_secs(1), late).await.is_err() });
    assert!(missed, "an older notification does not count");
}

#[test]
fn a_sender_that_goes_away_is_noticed() {
    let world = OneHost::new(4);
    let (sender, receiver) = oneshot::channel::<u8>();
    drop(sender);
    assert!(world.run(receiver).is_err());
    let (sender, receiver) = oneshot::channel();
    drop(receiver);
    assert!(sender.is_closed());
    assert_eq!(sender.send(1), Err(1));
}

#[test]
fn futures_join_and_race() {
    let world = OneHost::new(5);
    let env = world.env();
    let (slow, fast) = (env.sleep(Duration::from_secs(2)), env.sleep(Duration::from_secs(1)));
    assert_eq!(world.run(select(slow, fast)), Either::Right(()));
    assert_eq!(world.run(join(async { 1 }, async { 2 })), (1, 2));
    let sleeps: Vec<_> = [5, 3, 4].map(|s| env.sleep(Duration::from_secs(s))).into();
    assert_eq!(world.run(select_all(sleeps)).0, 1);
    let out = world.run({
        let env = env.clone();
        async move { env.timeout(Duration::from_secs(1), pending::<()>()).await }
    });
    assert!(out.is_err());
    assert_eq!(world.run(env.run_blocking(|| 7)), Ok(7));
}
