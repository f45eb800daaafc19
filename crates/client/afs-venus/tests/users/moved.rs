//! Rights to files that are moved to a directory with another access list.

use super::*;

/// Moves a file from one directory into another, both in the root.
async fn move_file(client: &Client, from: &str, to: &str) {
    let ((old, name), (new, to_name)) = (client.split(from).await.unwrap(), client.split(to).await.unwrap());
    client.venus.rename(old, name, new, to_name).await.unwrap();
}

#[test]
fn a_moved_file_is_under_the_rights_of_its_new_directory() {
    let cell = cell(17);
    let (one, two) = (cell.client(1), cell.client(2));
    let (here, there) = (one.clone(), two.clone());
    cell.on(&one, async move {
        log_in(&here).await;
        home_of_alice(&here).await;
        let alice = here.user(ALICE);
        alice.mkdir("open").await.unwrap();
        alice.set_acl("open", &[("alice", "rlidwka"), ("bob", "rl")]).await.unwrap();
        for name in ["open/a", "open/b"] {
            alice.put(name, b"of alice").await.unwrap();
            assert_eq!(here.user(BOB).get(name).await.unwrap(), b"of alice");
        }
    });
    cell.on(&two, async move {
        log_in(&there).await;
        assert_eq!(there.user(BOB).get("open/b").await.unwrap(), b"of alice");
        move_file(&there.user(ALICE), "open/b", "home/b").await;
    });
    let here = one.clone();
    cell.on(&one, async move {
        let (alice, bob) = (here.user(ALICE), here.user(BOB));
        move_file(&alice, "open/a", "home/a").await;
        // The directory from which they came is removed and cannot be fetched any more.
        let (top, name) = alice.split("open").await.unwrap();
        alice.venus.rmdir(top, name).await.unwrap();
        for name in ["home/a", "home/b"] {
            assert_eq!(alice.get(name).await.unwrap(), b"of alice", "{name}");
            let file = alice.find(name).await.unwrap().node;
            denied(bob.venus.getattr(file).await);
            denied(bob.venus.open(file, OpenFlags::READ).await);
        }
    });
}
