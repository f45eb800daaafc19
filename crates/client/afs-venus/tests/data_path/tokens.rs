//! Tokens that end: before a transfer, and in the middle of one.

use afs_rpc::UnixTime;
use afs_testkit::Claim;
use afs_venus::{Token, TokenOwner};
use afs_wire::ids::CellName;

use super::*;

/// Bytes that are fetched at a time where a transfer is to take long: more than what a drive sends in advance.
const LONG: u64 = 4 << 20;

/// Seconds from now on, as a time.
fn in_seconds(client: &Client, secs: u64) -> UnixTime {
    UnixTime { secs: client.env.wall().secs + secs, nanos: 0 }
}

/// Alice's token, which ends at a time that the server knows too.
async fn log_in_until(client: &Client, expires: UnixTime) {
    let security = Claim::of("alice").ending_at(expires).security();
    let cell = CellName::new("test.cell").unwrap();
    let label = "alice".into();
    let token = Token { cell, security, expires: Some(expires), label, is_narrowed: false };
    client.venus.set_token(TokenOwner::Uid(ALICE), token).await.unwrap();
}

/// A cell in which a transfer of [`LONG`] takes ten seconds.
fn slow_cell(seed: u64) -> Cell {
    let cell = cell(seed, true);
    cell.set_limits(|limits| limits.chunk_bytes = LONG);
    cell.set_streams(StreamConfig {
        bytes_per_second: LONG / 10,
        send_buffer: 64 << 10,
        receive_buffer: 64 << 10,
        ..StreamConfig::default()
    });
    cell
}

/// Transfers that were made by calls because a drive refused them.
fn refused(client: &Client) -> u64 {
    client.venus.counters().path_fallbacks.get("refused").copied().unwrap_or_default()
}

#[test]
fn a_token_that_ends_takes_its_capabilities_along() {
    let cell = cell(5, false);
    let machine = cell.client(1);
    let here = machine.clone();
    let handle = cell.on(&machine, async move {
        log_in(&here).await;
        home_of_alice(&here).await;
        here.user(ALICE).set_acl("home", &[("alice", "rlidwka")]).await.unwrap();
        // Of the file only this machine's own copy is complete: it is forgotten.
        here.venus.set_property(NodeId::ROOT, b"afs.flush", b"all").await.unwrap();
        let expires = Some(UnixTime { secs: here.env.wall().secs + 60, nanos: 0 });
        here.log_in_as(TokenOwner::Uid(ALICE), "alice", expires).await;
        let alice = here.user(ALICE);
        let handle = alice.open("home/big", OpenFlags::READ).await.unwrap();
        chunk(&alice, handle, 0).await.unwrap();
        here.env.sleep(OPENING).await;
        let before = by_path(&here).0;
        chunk(&alice, handle, 1).await.unwrap();
        assert_eq!(by_path(&here).0 - before, CHUNK);
        handle
    });
    cell.sim.run_for(Duration::from_secs(60));
    let here = machine.clone();
    cell.on(&machine, async move {
        let (alice, before) = (here.user(ALICE), by_path(&here).0);
        denied(chunk(&alice, handle, 2).await);
        assert_eq!(by_path(&here).0, before);
        here.log_in(ALICE, "alice").await;
        chunk(&alice, handle, 2).await.unwrap();
    });
}

/// The drive ends the capability with the token. The bytes come by a call on the connection that the read began with.
#[test]
fn a_fetch_in_whose_middle_the_token_ends_is_completed_and_the_next_one_is_denied() {
    let cell = slow_cell(8);
    let machine = cell.client(1);
    let here = machine.clone();
    cell.on(&machine, async move {
        log_in(&here).await;
        let (alice, data) = (here.user(ALICE), pattern(3 * LONG as usize, 8));
        alice.mkdir("home").await.unwrap();
        alice.put("home/film", &data).await.unwrap();
        alice.set_acl("home", &[("alice", "rlidwka")]).await.unwrap();
        here.venus.set_property(NodeId::ROOT, b"afs.flush", b"all").await.unwrap();
        let end = in_seconds(&here, 20);
        log_in_until(&here, end).await;
        let alice = here.user(ALICE);
        let handle = alice.open("home/film", OpenFlags::READ).await.unwrap();
        alice.venus.read(handle, 0, 10).await.unwrap();
        here.env.sleep(OPENING).await;
        let (before, calls) = (by_path(&here).0, here.calls("FetchData64"));
        here.env.sleep(Duration::from_secs(end.secs - here.env.wall().secs - 5)).await;
        let read = alice.venus.read(handle, LONG, LONG as usize).await.unwrap();
        assert!(read == data[LONG as usize..][..LONG as usize]);
        assert!(here.env.wall() >= end, "the transfer was over before");
        assert_eq!((by_path(&here).0, refused(&here)), (before, 1));
        assert_eq!(here.calls("FetchData64"), calls + 1);
        denied(alice.venus.read(handle, 2 * LONG, 10).await);
        assert_eq!((by_path(&here).0, here.calls("GetCapability")), (before, 2));
    });
}

/// The same for a store: it is made whole, by a call.
#[test]
fn a_store_in_whose_middle_the_token_ends_is_made_by_a_call_and_the_next_one_is_denied() {
    let cell = slow_cell(9);
    let (machine, other) = (cell.client(1), cell.client(2));
    let here = machine.clone();
    let data = cell.on(&machine, async move {
        log_in(&here).await;
        let (alice, data) = (here.user(ALICE), pattern(LONG as usize, 9));
        alice.mkdir("home").await.unwrap();
        alice.put("home/small", &pattern(100_000, 1)).await.unwrap();
        alice.set_acl("home", &[("alice", "rlidwka")]).await.unwrap();
        let end = in_seconds(&here, 20);
        log_in_until(&here, end).await;
        let alice = here.user(ALICE);
        alice.put("home/small", &pattern(100_000, 2)).await.unwrap();
        let handle = alice.open_new("home/film").await.unwrap();
        alice.write_all(handle, &data).await.unwrap();
        let (before, commits) = (by_path(&here).1, here.calls("Commit"));
        here.env.sleep(Duration::from_secs(end.secs - here.env.wall().secs - 5)).await;
        alice.venus.flush(handle, 0).await.unwrap();
        assert!(here.env.wall() >= end, "the transfer was over before");
        assert_eq!((by_path(&here).1, here.calls("Commit"), refused(&here)), (before, commits, 1));
        alice.venus.write(handle, 0, pattern(LONG as usize, 3).into()).await.unwrap();
        denied(alice.venus.flush(handle, 0).await);
        assert_eq!((by_path(&here).1, here.calls("Commit")), (before, commits));
        data
    });
    let there = other.clone();
    cell.on(&other, async move {
        log_in(&there).await;
        assert!(there.user(ALICE).get("home/film").await.unwrap() == data);
    });
}

/// A server's offer is kept for 256 tokens.
#[test]
fn of_more_users_than_a_path_is_remembered_for_the_oldest_ask_again_and_all_read_by_it() {
    const USERS: std::ops::Range<u32> = 2000..2260;
    let cell = cell(9, true);
    let machine = cell.client(1);
    let here = machine.clone();
    cell.on(&machine, async move {
        log_in(&here).await;
        home_of_alice(&here).await;
        for uid in USERS {
            here.log_in(uid, "bob").await;
        }
        for uid in USERS {
            assert_eq!(read_by_path(&here, uid).await, 1, "user {uid} has not asked");
        }
        assert_eq!(read_by_path(&here, USERS.end - 1).await, 0, "the last one has asked");
        assert_eq!(read_by_path(&here, USERS.start).await, 1, "the first one is not remembered");
    });
}

/// How often a user who reads two chunks of Alice's file, the second by the path, asks the server for it.
async fn read_by_path(client: &Client, uid: u32) -> u64 {
    client.venus.set_property(NodeId::ROOT, b"afs.flush", b"all").await.unwrap();
    let (user, asked) = (client.user(uid), client.calls("DataPath"));
    let handle = user.open("home/big", OpenFlags::READ).await.unwrap();
    chunk(&user, handle, 0).await.unwrap();
    client.env.sleep(OPENING).await;
    let before = by_path(client).0;
    chunk(&user, handle, 1).await.unwrap();
    assert_eq!(by_path(client).0 - before, CHUNK, "user {uid}");
    user.venus.release(handle).await.unwrap();
    client.calls("DataPath") - asked
}
