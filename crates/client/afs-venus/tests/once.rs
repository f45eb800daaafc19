//! Changes of names whose replies are lost, without a lease: each is made once, whatever others do before it is sent again, and also if the server
//! is started again in between.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_venus::Result;
use common::{Cell, Client};

/// A machine does something, whose reply is lost; then another one does something, and the server may be started again. Returns what the first
/// one was told.
fn lost<D, O>(
    (seed, is_restarted): (u64, bool),
    changes: impl FnOnce(Client) -> D,
    others: impl FnOnce(Client) -> O,
) -> (Cell, [Client; 2], Result<()>)
where
    D: Future<Output = Result<()>> + Send + 'static,
    O: Future<Output = ()> + Send + 'static,
{
    let cell = Cell::new(seed);
    cell.set_limits(|limits| limits.server_wait = Duration::from_secs(45));
    let [a, b] = [1, 2].map(|number| cell.client(number));
    let client = a.clone();
    cell.on(&a, async move {
        client.mkdir("dir").await.unwrap();
        client.put("dir/old", b"of a").await.unwrap();
        client.names("dir").await.unwrap();
    });
    let calls = a.calls("ChangeList");
    let told: Arc<Mutex<Option<Result<()>>>> = Arc::default();
    let (changing, noted) = (changes(a.clone()), told.clone());
    a.env.spawn(Box::pin(async move {
        let outcome = changing.await;
        *noted.lock().unwrap() = Some(outcome);
    }));
    cell.sim.run_until(common::LIMIT, || a.calls("ChangeList") > calls).unwrap();
    cell.sim.world().cut(cell.server, a.node);
    cell.sim.run_for(Duration::from_secs(1));
    assert!(told.lock().unwrap().is_none(), "the reply came");
    cell.on(&b, others(b.clone()));
    match is_restarted {
        true => cell.restart_server(),
        // The call ends without a reply, and another one is made.
        false => cell.sim.run_for(Duration::from_secs(25)),
    }
    cell.sim.world().mend(cell.server, a.node);
    cell.sim.run_until(common::LIMIT, || told.lock().unwrap().is_some()).unwrap();
    let told = told.lock().unwrap().take().unwrap();
    // What it missed meanwhile it hears of with its next call.
    cell.sim.run_for(Duration::from_secs(200));
    (cell, [a, b], told)
}

/// What a machine has in the directory.
fn seen(cell: &Cell, by: &Client) -> Vec<(String, Vec<u8>)> {
    let client = by.clone();
    cell.on(by, async move {
        let mut all = Vec::new();
        for name in client.names("dir").await.unwrap() {
            if name != "." && name != ".." {
                all.push((name.clone(), client.get(&format!("dir/{name}")).await.unwrap()));
            }
        }
        all.sort();
        all
    })
}

fn assert_seen<const N: usize>(cell: &Cell, by: &[Client; 2], want: [(&str, &[u8]); N]) {
    let want: Vec<_> = want.into_iter().map(|(name, data)| (name.to_owned(), data.to_vec())).collect();
    by.iter().rev().for_each(|client| assert_eq!(seen(cell, client), want));
}

#[test]
fn a_removal_takes_no_file_that_another_machine_has_made_since() {
    for (seed, is_restarted) in [(1, false), (2, true)] {
        let removes = |client: Client| async move {
            let dir = client.find("dir").await?.node;
            client.venus.unlink(dir, b"old").await
        };
        let makes = |client: Client| async move { client.put("dir/old", b"of b").await.unwrap() };
        let (cell, machines, told) = lost((seed, is_restarted), removes, makes);
        assert_eq!(told, Ok(()));
        assert_seen(&cell, &machines, [("old", b"of b")]);
    }
}

#[test]
fn a_rename_moves_no_file_that_another_machine_has_made_since() {
    for (seed, is_restarted) in [(3, false), (4, true)] {
        let renames = |client: Client| async move {
            let dir = client.find("dir").await?.node;
            client.venus.rename(dir, b"old", dir, b"new").await
        };
        let makes = |client: Client| async move { client.put("dir/old", b"of b").await.unwrap() };
        let (cell, machines, told) = lost((seed, is_restarted), renames, makes);
        assert_eq!(told, Ok(()));
        assert_seen(&cell, &machines, [("new", b"of a"), ("old", b"of b")]);
    }
}

/// The other machine's files would hide from the version of the directory which of the changes was whose.
#[test]
fn an_object_that_was_made_is_the_one_of_its_program() {
    for (seed, is_restarted) in [(5, false), (6, true)] {
        let makes = |client: Client| async move { client.mkdir("dir/sub").await.map(drop) };
        let others = |client: Client| async move {
            for name in ["dir/x", "dir/y"] {
                client.put(name, b"of b").await.unwrap();
            }
        };
        let (cell, [a, b], told) = lost((seed, is_restarted), makes, others);
        assert_eq!(told, Ok(()));
        let client = b.clone();
        cell.on(&b, async move { assert!(client.find("dir/sub").await.is_ok()) });
        let client = a.clone();
        cell.on(&a, async move { client.put("dir/sub/inner", b"of a").await.unwrap() });
    }
}
