//! Locks of a machine that are lost, and locks that must not be.

// A cell that cannot be made is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::time::Duration;

use afs_venus::{ErrorKind, HandleId, LockKind, LockRange, OpenFlags};
use bytes::Bytes;
use common::{Cell, Client, SUCCESSOR};

const OWNER: u64 = 7;

/// The first machine locks the file and has dirty data of it.
fn locked(cell: &Cell, a: &Client) -> HandleId {
    let one = a.clone();
    cell.on(a, async move {
        one.put("file", b"before").await.unwrap();
        let handle = one.open("file", OpenFlags::READ_WRITE).await.unwrap();
        one.venus.lock(handle, OWNER, 1, LockRange::WHOLE, LockKind::Write, false).await.unwrap();
        one.venus.write(handle, 0, Bytes::from_static(b"of a  ")).await.unwrap();
        handle
    })
}

/// True if the second machine gets the lock; `change` is what it then writes.
fn try_lock(cell: &Cell, b: &Client, change: Option<&'static [u8]>) -> bool {
    let two = b.clone();
    cell.on(b, async move {
        let handle = two.open("file", OpenFlags::READ_WRITE).await.unwrap();
        let got = two.venus.lock(handle, 9, 2, LockRange::WHOLE, LockKind::Write, false).await;
        if let (Ok(()), Some(change)) = (&got, change) {
            two.venus.write(handle, 0, Bytes::from_static(change)).await.unwrap();
        }
        two.venus.flush(handle, 9).await.unwrap();
        two.venus.release(handle).await.unwrap();
        match got {
            Ok(()) => true,
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::WouldBlock, "{error}");
                false
            }
        }
    })
}

fn cut(cell: &Cell, client: &Client) {
    cell.sim.world().cut(client.node, cell.server);
    cell.sim.world().cut(cell.server, client.node);
}

fn mend(cell: &Cell, client: &Client) {
    cell.sim.world().mend(client.node, cell.server);
    cell.sim.world().mend(cell.server, client.node);
}

#[test]
fn a_lock_is_still_its_holders_after_a_restart_of_the_server() {
    let cell = Cell::new(41);
    let (a, b) = (cell.client(1), cell.client(2));
    let mine = locked(&cell, &a);
    cell.restart_server();
    assert!(!try_lock(&cell, &b, None));
    cell.sim.run_for(Duration::from_secs(900));
    assert!(!try_lock(&cell, &b, None));
    let one = a.clone();
    cell.on(&a, async move { one.venus.flush(mine, OWNER).await.unwrap() });
    assert!(try_lock(&cell, &b, None));
    let two = b.clone();
    cell.on(&b, async move { assert_eq!(two.get("file").await.unwrap(), b"of a  ") });
}

#[test]
fn a_lock_that_ended_and_that_nobody_took_goes_on() {
    let cell = Cell::new(42);
    let (a, b) = (cell.client(1), cell.client(2));
    let mine = locked(&cell, &a);
    cut(&cell, &a);
    cell.sim.run_for(Duration::from_secs(400));
    mend(&cell, &a);
    cell.sim.run_for(Duration::from_secs(180));
    assert!(!try_lock(&cell, &b, None));
    let one = a.clone();
    cell.on(&a, async move { one.venus.flush(mine, OWNER).await.unwrap() });
}

#[test]
fn a_lock_that_was_taken_and_given_back_without_a_change_goes_on() {
    let cell = Cell::new(43);
    let (a, b) = (cell.client(1), cell.client(2));
    let mine = locked(&cell, &a);
    cut(&cell, &a);
    cell.sim.run_for(Duration::from_secs(400));
    assert!(try_lock(&cell, &b, None));
    mend(&cell, &a);
    cell.sim.run_for(Duration::from_secs(180));
    assert!(!try_lock(&cell, &b, None));
    let one = a.clone();
    cell.on(&a, async move { one.venus.flush(mine, OWNER).await.unwrap() });
}

#[test]
fn the_holder_of_a_lost_lock_is_told_and_overwrites_nothing() {
    let cell = Cell::new(44);
    let (a, b) = (cell.client(1), cell.client(2));
    let mine = locked(&cell, &a);
    cut(&cell, &a);
    cell.sim.run_for(Duration::from_secs(400));
    assert!(try_lock(&cell, &b, Some(b"of b")));
    mend(&cell, &a);
    cell.sim.run_for(NOTICED);
    let one = a.clone();
    cell.on(&a, async move {
        let refused = one.venus.fsync(mine).await.unwrap_err();
        assert_eq!((refused.kind, refused.errno()), (ErrorKind::LockLost, 5), "{refused}");
        let again = one.venus.lock(mine, OWNER, 1, LockRange::WHOLE, LockKind::Write, false).await;
        assert_eq!(again.unwrap_err().errno(), 37);
        assert_eq!(one.venus.flush(mine, OWNER).await.unwrap_err().errno(), 5);
        one.venus.release(mine).await.ok();
    });
    // Nor later, when failed stores are retried.
    cell.sim.run_for(Duration::from_secs(600));
    let one = a.clone();
    cell.on(&a, async move {
        assert_eq!(one.get("file").await.unwrap(), b"of bre");
        let handle = one.open("file", OpenFlags::READ_WRITE).await.unwrap();
        one.venus.lock(handle, OWNER, 1, LockRange::WHOLE, LockKind::Write, false).await.unwrap();
        one.venus.write(handle, 0, Bytes::from_static(b"anew")).await.unwrap();
        one.venus.flush(handle, OWNER).await.unwrap();
        one.venus.release(handle).await.unwrap();
    });
    let two = b.clone();
    cell.on(&b, async move { assert!(two.get("file").await.unwrap().starts_with(b"anew")) });
}

/// Time after which a client has noticed that a server is reachable again; until then it may return errors at once.
const NOTICED: Duration = Duration::from_secs(10);

/// The first machine closes the file while its server is unreachable.
fn close_without_reply(cell: &Cell, a: &Client, mine: HandleId) {
    let one = a.clone();
    cell.on(a, async move {
        one.venus.flush(mine, OWNER).await.unwrap_err();
        one.venus.release(mine).await.ok();
    });
}

#[test]
fn a_lock_whose_return_had_no_answer_keeps_nobody_of_its_machine_out() {
    let cell = Cell::new(47);
    let (a, b) = (cell.client(1), cell.client(2));
    let mine = locked(&cell, &a);
    cut(&cell, &a);
    close_without_reply(&cell, &a, mine);
    // The server has not received the release of the lock.
    assert!(!try_lock(&cell, &b, None));
    mend(&cell, &a);
    cell.sim.run_for(NOTICED);
    assert!(try_lock(&cell, &a, None));
    assert!(try_lock(&cell, &b, None));
}

/// Longest time that a leftover lock may exclude other clients once its server is reachable again, also after a
/// restart.
const RETURN: Duration = Duration::from_secs(60);

#[test]
fn a_lock_that_could_not_be_given_back_is_when_the_server_answers_again() {
    for (seed, heard) in [(50, false), (51, true)] {
        let cell = Cell::new(seed);
        let (a, b) = (cell.client(1), cell.client(2));
        let mine = locked(&cell, &a);
        cell.sim.world().cut(cell.server, a.node);
        if !heard {
            cell.sim.world().cut(a.node, cell.server);
        }
        close_without_reply(&cell, &a, mine);
        mend(&cell, &a);
        cell.sim.run_for(RETURN);
        assert!(try_lock(&cell, &b, None), "seed {seed}");
    }
}

#[test]
fn a_lock_that_could_not_be_given_back_is_when_the_server_was_restarted() {
    let cell = Cell::new(52);
    let (a, b) = (cell.client(1), cell.client(2));
    let mine = locked(&cell, &a);
    cell.sim.crash(cell.server);
    close_without_reply(&cell, &a, mine);
    cell.sim.run_for(Duration::from_secs(400));
    cell.sim.restart(cell.server);
    cell.start_server();
    cell.sim.run_for(RETURN);
    assert!(try_lock(&cell, &b, None));
}

#[test]
fn a_leftover_lock_is_released_though_its_file_was_evicted() {
    let cell = Cell::new(53);
    cell.set_limits(|limits| limits.statuses_max = 100);
    let (a, b) = (cell.client(1), cell.client(2));
    let (one, two) = (a.clone(), b.clone());
    cell.on(&b, async move {
        two.mount("proj", "#proj.").await.unwrap();
        for n in 0..300 {
            two.put(&format!("proj/{n}"), b"").await.unwrap();
        }
    });
    let mine = cell.on(&a, async move {
        one.put("file", b"before").await.unwrap();
        let handle = one.open("file", OpenFlags::READ).await.unwrap();
        one.venus.lock(handle, OWNER, 1, LockRange::WHOLE, LockKind::Write, false).await.unwrap();
        handle
    });
    cell.sim.crash(cell.server);
    let one = a.clone();
    cell.on(&a, async move {
        one.venus.flush(mine, OWNER).await.unwrap();
        one.venus.release(mine).await.unwrap();
    });
    // So that it is not released before its file is evicted from the cache.
    cut(&cell, &a);
    cell.sim.restart(cell.server);
    cell.start_server();
    mend(&cell, &a);
    let one = a.clone();
    cell.on(&a, async move {
        while one.names("proj").await.is_err() {
            afs_rpc::EnvExt::sleep(&*one.env, Duration::from_secs(1)).await;
        }
        for n in 0..300 {
            one.find(&format!("proj/{n}")).await.unwrap();
        }
    });
    cell.sim.run_for(RETURN);
    assert!(try_lock(&cell, &b, None));
}

#[test]
fn a_lock_taken_anew_is_not_given_back_for_the_one_before() {
    let cell = Cell::new(54);
    let (a, b) = (cell.client(1), cell.client(2));
    let mine = locked(&cell, &a);
    cut(&cell, &a);
    close_without_reply(&cell, &a, mine);
    mend(&cell, &a);
    cell.sim.run_for(NOTICED);
    let one = a.clone();
    let again = cell.on(&a, async move {
        let handle = one.open("file", OpenFlags::READ_WRITE).await.unwrap();
        one.venus.lock(handle, OWNER, 1, LockRange::WHOLE, LockKind::Write, false).await.unwrap();
        handle
    });
    cell.sim.run_for(Duration::from_secs(1200));
    assert!(!try_lock(&cell, &b, None));
    let one = a.clone();
    cell.on(&a, async move { one.venus.flush(again, OWNER).await.unwrap() });
    assert!(try_lock(&cell, &b, None));
}

#[test]
fn a_mount_that_is_stopped_in_order_leaves_no_lock() {
    // One that a process still holds, and one whose release the server did not receive.
    for (seed, is_closed) in [(55, false), (56, true)] {
        let cell = Cell::new(seed);
        let (a, b) = (cell.client(1), cell.client(2));
        let mine = locked(&cell, &a);
        if is_closed {
            cut(&cell, &a);
            close_without_reply(&cell, &a, mine);
            mend(&cell, &a);
        }
        let one = a.clone();
        cell.on(&a, async move { one.venus.shut_down().await.ok() });
        assert!(try_lock(&cell, &b, None), "seed {seed}");
    }
}

#[test]
fn a_mount_is_stopped_in_bounded_time_though_a_lock_cannot_be_given_back() {
    let cell = Cell::new(57);
    let a = cell.client(1);
    let mine = locked(&cell, &a);
    cut(&cell, &a);
    close_without_reply(&cell, &a, mine);
    let one = a.clone();
    let took = cell.on(&a, async move {
        let began = one.env.now();
        one.venus.shut_down().await.ok();
        one.env.now().saturating_since(began)
    });
    assert!(took < Duration::from_secs(30), "{took:?}");
}

#[test]
fn a_lock_that_a_killed_client_has_left_is_its_successors() {
    for (seed, left) in [(45, LockKind::Read), (46, LockKind::Write)] {
        let cell = Cell::new(seed);
        let (a, b) = (cell.client(1), cell.client(2));
        let lock = |client: &Client, kinds: &'static [LockKind]| {
            let one = client.clone();
            cell.on(client, async move {
                let handle = one.open("file", OpenFlags::READ_WRITE).await.unwrap();
                for kind in kinds {
                    one.venus.lock(handle, OWNER, 1, LockRange::WHOLE, *kind, false).await.unwrap();
                }
                handle
            })
        };
        let one = a.clone();
        cell.on(&a, async move { one.put("file", b"before").await.unwrap() });
        lock(&a, if left == LockKind::Read { &[LockKind::Read] } else { &[LockKind::Write] });
        cell.sim.crash(a.node);
        // As a database does that tests the lock, reads, and then writes.
        let again = cell.client(1 + SUCCESSOR);
        let one = again.clone();
        let in_the_way = cell.on(&again, async move {
            let handle = one.open("file", OpenFlags::READ_WRITE).await.unwrap();
            one.venus.test_lock(handle, OWNER, LockRange::WHOLE, LockKind::Write).await.unwrap()
        });
        assert_eq!(in_the_way, None, "{left:?}");
        let handle = lock(&again, &[LockKind::Read, LockKind::Write]);
        assert!(!try_lock(&cell, &b, None));
        let one = again.clone();
        cell.on(&again, async move { one.venus.flush(handle, OWNER).await.unwrap() });
        assert!(try_lock(&cell, &b, None), "{left:?}");
    }
}
