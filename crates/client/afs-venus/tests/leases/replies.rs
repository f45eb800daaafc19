//! Replies that are lost: of lists, and of the single calls by which a lost lease is made good. Nothing is made twice, nothing of others is
//! removed or replaced, and nothing is given up that this client itself has made.

use super::*;

/// A machine that has the lease of `dir`, with four files, a directory and `saved`, all sent; and one that takes no leases.
fn two_machines(seed: u64) -> (Cell, [Client; 2]) {
    let cell = cell(seed);
    // Longer than a reply is away: what waits for it goes on when the server replies again.
    cell.set_limits(|limits| limits.server_wait = Duration::from_secs(45));
    let a = cell.client(1);
    cell.set_limits(|limits| limits.leases = false);
    let b = cell.client(2);
    let client = a.clone();
    cell.on(&a, async move {
        lease(&client, "dir").await;
        client.mkdir("dir/model").await.unwrap();
        client.put("dir/saved", b"old").await.unwrap();
        client.env.sleep(Duration::from_secs(2)).await;
    });
    (cell, [a, b])
}

fn cut(cell: &Cell, client: &Client) {
    cell.sim.world().cut(client.node, cell.server);
    cell.sim.world().cut(cell.server, client.node);
}

fn mend(cell: &Cell, client: &Client) {
    cell.sim.world().mend(client.node, cell.server);
    cell.sim.world().mend(cell.server, client.node);
}

async fn unlink(client: &Client, name: &str) {
    let dir = client.find("dir").await.unwrap().node;
    client.venus.unlink(dir, name.as_bytes()).await.unwrap();
}

async fn rename(client: &Client, from: &str, to: &str) {
    let dir = client.find("dir").await.unwrap().node;
    client.venus.rename(dir, from.as_bytes(), dir, to.as_bytes()).await.unwrap();
}

/// What the first machine decides while it is cut off, and the other one does when it has taken the lease away. Returns when all was made good.
fn decided_and_lost<D, O>(
    seed: u64,
    decides: impl FnOnce(Client) -> D,
    others: impl FnOnce(Client) -> O,
) -> (Cell, [Client; 2])
where
    D: Future<Output = ()> + Send + 'static,
    O: Future<Output = ()> + Send + 'static,
{
    let (cell, [a, b]) = two_machines(seed);
    cut(&cell, &a);
    cell.on(&a, decides(a.clone()));
    cell.on(&b, others(b.clone()));
    mend(&cell, &a);
    cell.sim.run_for(Duration::from_secs(100));
    assert_eq!(a.venus.counters().leases_lost, 1);
    (cell, [a, b])
}

/// The same for lists that the server has made, whose replies are lost with it.
fn made_and_lost<D, O>(
    seed: u64,
    decides: impl FnOnce(Client) -> D,
    others: impl FnOnce(Client) -> O,
) -> (Cell, [Client; 2])
where
    D: Future<Output = ()> + Send + 'static,
    O: Future<Output = ()> + Send + 'static,
{
    let (cell, [a, b]) = two_machines(seed);
    cell.sim.world().cut(cell.server, a.node);
    cell.on(&a, decides(a.clone()));
    cell.restart_server();
    cell.on(&b, others(b.clone()));
    mend(&cell, &a);
    cell.sim.run_for(Duration::from_secs(100));
    (cell, [a, b])
}

/// What is in the directory besides what was there at first.
fn seen(cell: &Cell, by: &Client) -> BTreeMap<String, Vec<u8>> {
    let client = by.clone();
    cell.on(by, async move {
        let mut all = BTreeMap::new();
        for name in client.names("dir").await.unwrap() {
            if !matches!(name.as_str(), "." | ".." | "model") && !name.starts_with("first") {
                all.insert(name.clone(), client.get(&format!("dir/{name}")).await.unwrap());
            }
        }
        all
    })
}

fn assert_seen<const N: usize>(cell: &Cell, by: &[Client; 2], want: [(&str, &[u8]); N]) {
    let want: BTreeMap<_, _> = want.into_iter().map(|(name, data)| (name.into(), data.to_vec())).collect();
    for client in by.iter().rev() {
        assert_eq!(seen(cell, client), want);
    }
}

/// Changes that are in the log as not made, and files whose data was set aside.
fn given_up(client: &Client) -> (u64, usize) {
    let unsaved = client.venus.unsaved(afs_venus::TokenOwner::Uid(0), 0);
    (client.venus.counters().changes_given_up, unsaved.len())
}

#[test]
fn removals_that_were_not_made_are_made_though_others_have_changed_the_directory() {
    let decides = |client: Client| async move {
        unlink(&client, "first0").await;
        unlink(&client, "first1").await;
        rename(&client, "first2", "renamed").await;
    };
    let others = |client: Client| async move { put_all(&client, "dir", 0..5).await };
    let (cell, [a, b]) = decided_and_lost(600, decides, others);
    let other = b.clone();
    cell.on(&b, async move {
        let mut names = other.names("dir").await.unwrap();
        names.retain(|name| !name.starts_with("file"));
        names.sort();
        assert_eq!(names, [".", "..", "first3", "model", "renamed", "saved"]);
    });
    assert_eq!(given_up(&a), (0, 0));
}

/// Names are looked at in a copy of the directory, which has what was made good before.
#[test]
fn what_is_made_good_first_is_seen_by_what_is_made_good_after_it() {
    let decides = |client: Client| async move {
        unlink(&client, "first0").await;
        client.put("dir/gone", b"of a").await.unwrap();
        client.put("dir/tmp", b"of a").await.unwrap();
        rename(&client, "tmp", "saved").await;
        unlink(&client, "gone").await;
        put_by_link(&client, "dir", "linked", b"of a").await.unwrap();
        rename(&client, "linked", "renamed").await;
    };
    let others = |client: Client| async move { drop(client.names("dir").await.unwrap()) };
    let (cell, machines) = decided_and_lost(613, decides, others);
    // Once before the loss, and once after it.
    assert_eq!(machines[0].calls("FetchData64"), 2);
    assert_seen(&cell, &machines, [("renamed", b"of a"), ("saved", b"of a")]);
    assert_eq!(given_up(&machines[0]), (0, 0));
}

#[test]
fn removals_take_no_file_that_others_have_put_in_the_place() {
    let decides = |client: Client| async move {
        unlink(&client, "saved").await;
        rename(&client, "first0", "renamed").await;
    };
    let others = |client: Client| async move {
        for name in ["saved", "first0"] {
            client.put("dir/new", b"of b").await.unwrap();
            rename(&client, "new", name).await;
        }
    };
    let (cell, machines) = decided_and_lost(601, decides, others);
    assert_seen(&cell, &machines, [("saved", b"of b")]);
    let other = machines[1].clone();
    cell.on(&other.clone(), async move { assert_eq!(other.get("dir/first0").await.unwrap(), b"of b") });
    assert_eq!(given_up(&machines[0]), (0, 0));
}

#[test]
fn removals_that_were_made_are_not_made_again_of_what_others_have_made_since() {
    let decides = |client: Client| async move {
        unlink(&client, "saved").await;
        // The list arrives, and its reply does not.
        client.env.sleep(Duration::from_secs(3)).await;
    };
    let others = |client: Client| async move { client.put("dir/saved", b"of b").await.unwrap() };
    let (cell, machines) = made_and_lost(602, decides, others);
    assert_seen(&cell, &machines, [("saved", b"of b")]);
    assert_eq!(given_up(&machines[0]), (0, 0));
    assert_eq!(machines[0].venus.counters().leases_lost, 0, "the server says that the list was made");
}

/// The programs of this machine have removed one of the files again, and renamed the other one over a file.
#[test]
fn names_that_others_have_taken_are_neither_removed_nor_moved() {
    let decides = |client: Client| async move {
        client.put("dir/both", b"of a").await.unwrap();
        set(&client, "dir/both", 0o600, 77).await;
        client.put("dir/both", &pattern(40_000, 1)).await.unwrap();
        unlink(&client, "both").await;
        client.put("dir/tmp", b"of a").await.unwrap();
        rename(&client, "tmp", "saved").await;
    };
    let others = |client: Client| async move {
        client.put("dir/both", b"of b").await.unwrap();
        client.put("dir/tmp", b"of b").await.unwrap();
    };
    let (cell, machines) = decided_and_lost(603, decides, others);
    assert_seen(&cell, &machines, [("both", b"of b"), ("saved", b"old"), ("tmp", b"of b")]);
    // Of what its program has removed nothing is kept.
    assert_eq!(given_up(&machines[0]), (1, 1));
}

/// The server has made a save, and another machine has saved the file since.
#[test]
fn a_save_that_was_made_does_not_replace_what_others_have_saved_since() {
    for is_removed in [false, true] {
        let decides = move |client: Client| async move {
            client.put("dir/new", b"of a").await.unwrap();
            rename(&client, "new", "saved").await;
            client.env.sleep(Duration::from_secs(3)).await;
            if is_removed {
                unlink(&client, "saved").await;
            }
        };
        let others = |client: Client| async move {
            client.put("dir/other", b"of b").await.unwrap();
            rename(&client, "other", "saved").await;
        };
        let (cell, machines) = made_and_lost(604, decides, others);
        assert_seen(&cell, &machines, [("saved", b"of b")]);
        assert_eq!(given_up(&machines[0]), (0, 0));
        // By the removal, which was not sent.
        assert_eq!(machines[0].venus.counters().leases_lost, u64::from(is_removed));
    }
}

/// The volume takes two more files when the list comes, and more later.
#[test]
fn the_changes_behind_one_that_failed_are_made_though_the_reply_is_lost() {
    let (cell, [a, b]) = two_machines(605);
    let volume = || cell.partitions().volume(cell.volume(common::ROOT)).unwrap();
    let limit = |files: Option<u32>| {
        let volume = volume();
        async move {
            let set = volume.edit(move |tx| {
                let header = tx.edit_header();
                header.max_files = files.map_or(0, |files| header.file_count as u32 + files);
                Ok(())
            });
            set.await.unwrap();
        }
    };
    cell.on(&a, limit(Some(2)));
    cell.sim.world().cut(cell.server, a.node);
    let client = a.clone();
    cell.on(&a, async move {
        put_all(&client, "dir", 0..5).await;
        client.env.sleep(Duration::from_secs(3)).await;
    });
    cell.restart_server();
    cell.on(&b, limit(None));
    mend(&cell, &a);
    cell.sim.run_for(Duration::from_secs(100));
    let made = ["file0", "file1", "file2", "file3", "file4"].map(|name| (name, &b"data"[..]));
    let [zero, one, two, three, four] = made;
    assert_seen(&cell, &[a.clone(), b], [zero, one, two, three, four, ("saved", b"old")]);
    assert_eq!(given_up(&a), (0, 0));
}

/// What the first machine decides while it is cut off is made by a list of it alone, whose reply is lost too. Meanwhile the other
/// machine does something. A program may wait for it: then the call is repeated when the server replies again, and otherwise later.
fn lost_twice<D, O>(
    (seed, is_awaited): (u64, bool),
    decides: impl FnOnce(Client) -> D,
    others: impl FnOnce(Client) -> O,
) -> (Cell, [Client; 2])
where
    D: Future<Output = ()> + Send + 'static,
    O: Future<Output = ()> + Send + 'static,
{
    let (cell, [a, b]) = two_machines(seed);
    cut(&cell, &a);
    cell.on(&a, decides(a.clone()));
    let other = b.clone();
    cell.on(&b, async move { drop(other.names("dir").await.unwrap()) });
    if is_awaited {
        let client = a.clone();
        a.env.spawn(Box::pin(async move {
            let dir = client.find("dir").await.unwrap().node;
            client.venus.fsync_directory(dir).await.unwrap();
        }));
    }
    mend(&cell, &a);
    let calls = a.calls("ChangeList");
    cell.sim.run_until(LIMIT, || a.calls("ChangeList") > calls).unwrap();
    cell.sim.world().cut(cell.server, a.node);
    cell.sim.run_for(Duration::from_secs(1));
    cell.on(&b, others(b.clone()));
    cell.sim.run_for(Duration::from_secs(25));
    assert!(a.venus.activity().leases.waiting_changes > 0, "the reply came");
    mend(&cell, &a);
    cell.sim.run_for(Duration::from_secs(200));
    (cell, [a, b])
}

async fn nothing(_: Client) {}

#[test]
fn an_object_of_which_the_second_reply_is_lost_too_is_the_one_that_was_decided() {
    let file = |client: Client| async move {
        client.put("dir/file", b"of a").await.unwrap();
        set(&client, "dir/file", 0o600, 77).await;
    };
    let symlink = |client: Client| async move {
        let dir = client.find("dir").await.unwrap().node;
        client.venus.symlink(dir, b"link", b"saved").await.unwrap();
        rename(&client, "link", "link2").await;
    };
    let directory = |client: Client| async move {
        client.mkdir("dir/sub").await.unwrap();
        client.put("dir/sub/inner", b"of a").await.unwrap();
    };
    let linked = |client: Client| async move {
        put_by_link(&client, "dir", "object", b"of a").await.unwrap();
    };
    for (seed, is_awaited) in [(606, false), (616, true)] {
        let (cell, [a, b]) = lost_twice((seed, is_awaited), file, nothing);
        assert_eq!(given_up(&a), (0, 0));
        let other = b.clone();
        cell.on(&b, async move {
            let found = other.find("dir/file").await.unwrap().attr;
            assert_eq!((found.mode.0, found.size), (0o600, 4));
            assert_eq!(other.get("dir/file").await.unwrap(), b"of a");
        });
        let (cell, [a, b]) = lost_twice((seed + 1, is_awaited), symlink, nothing);
        assert_eq!(given_up(&a), (0, 0));
        let other = b.clone();
        cell.on(&b, async move { assert_eq!(other.find("dir/link2").await.unwrap().attr.size, 5) });
        let (cell, [a, b]) = lost_twice((seed + 2, is_awaited), directory, nothing);
        assert_eq!(given_up(&a), (0, 0));
        let other = b.clone();
        cell.on(&b, async move { assert_eq!(other.get("dir/sub/inner").await.unwrap(), b"of a") });
        let (cell, machines) = lost_twice((seed + 3, is_awaited), linked, nothing);
        assert_eq!(given_up(&machines[0]), (0, 0));
        assert_seen(&cell, &machines, [("object", b"of a"), ("saved", b"old")]);
    }
}

/// The file of the first machine was made, and the other one has removed it: that is all as it should be.
#[test]
fn a_file_of_others_is_not_taken_for_one_whose_reply_was_lost() {
    let decides = |client: Client| async move { client.put("dir/file", b"of a").await.unwrap() };
    let others = |client: Client| async move {
        unlink(&client, "file").await;
        client.put("dir/file", b"of b").await.unwrap();
    };
    let (cell, machines) = lost_twice((610, false), decides, others);
    assert_seen(&cell, &machines, [("file", b"of b"), ("saved", b"old")]);
    assert_eq!(given_up(&machines[0]), (0, 0));
}

#[test]
fn a_removal_or_rename_whose_reply_is_lost_takes_nothing_that_others_make_meanwhile() {
    let removes = |client: Client| async move { unlink(&client, "saved").await };
    let renames = |client: Client| async move { rename(&client, "saved", "renamed").await };
    let others = |client: Client| async move { client.put("dir/saved", b"of b").await.unwrap() };
    for (seed, is_awaited) in [(611, false), (621, true)] {
        let (cell, machines) = lost_twice((seed, is_awaited), removes, others);
        assert_seen(&cell, &machines, [("saved", b"of b")]);
        let (cell, machines) = lost_twice((seed + 1, is_awaited), renames, others);
        assert_seen(&cell, &machines, [("renamed", b"old"), ("saved", b"of b")]);
        assert_eq!(given_up(&machines[0]), (0, 0));
    }
}
