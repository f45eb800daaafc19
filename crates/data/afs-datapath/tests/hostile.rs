//! Peers that break the protocol or its spirit, at either end: a clear error, bounded memory, and no harm to others.

#![allow(clippy::unwrap_used)]

use crate::kit;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use afs_datapath::capability::{ByteRange, DriveId, Group, KeyEpoch, Nonce, TicketId};
use afs_datapath::frame::{
    Failure, Goodbye, HandleNumber, Hello, Message, RequestId, StoreDescription, VERSION, Welcome,
};
use afs_datapath::session::{Client, DriveLimits, Error, Lost, Patience, Security};
use afs_env::io::AsyncReadExt;
use afs_env::{BoxFuture, EnvExt};
use kit::{Kit, Raw, VERSION as FILE_VERSION, directory, drain, file, range, read};

fn read_message(request: u32, handle: u32, vnode: u32, range: ByteRange, credit: u32) -> Message {
    Message::Read {
        request: RequestId(request),
        handle: HandleNumber(handle),
        fid: file(vnode),
        range,
        version: FILE_VERSION,
        credit,
    }
}

/// A client that greets, presents a good capability as handle 0, and then does `act`. Returns what it was told last.
fn hostile(
    kit: &Kit,
    act: impl for<'a> FnOnce(&'a mut Raw) -> BoxFuture<'a, ()> + Send + 'static,
) -> Option<Message> {
    let (capability, secret) = kit.sealed(Group::Directory(directory(1)));
    let mut raw = kit.raw();
    kit.run(async move {
        let (_, nonces) = raw.greet().await;
        raw.present(0, &capability, &secret, &nonces).await;
        act(&mut raw).await;
        let mut last = None;
        while let Some(message) = raw.message().await {
            last = Some(message);
        }
        last
    })
}

/// The drive ends the connection, says why, counts it, and serves others.
#[track_caller]
fn assert_violation(act: impl for<'a> FnOnce(&'a mut Raw) -> BoxFuture<'a, ()> + Send + 'static) {
    let kit = Kit::new(1);
    let bytes = kit.files.add(file(2), 1000);
    let told = hostile(&kit, act);
    assert_eq!(told, Some(Message::Goodbye(Goodbye::Violation)));
    assert_eq!(kit.drive.counts().violations, 1);
    let client = kit.open();
    let handle = kit.present(&client);
    assert_eq!(kit.run(async move { read(&client, &handle, file(2), ByteRange::ALL).await.unwrap() }), bytes);
    kit.assert_quiet();
}

#[test]
fn frames_that_are_none() {
    assert_violation(|raw| Box::pin(async move { _ = raw.bytes(&[0xff; 12]).await }));
    assert_violation(|raw| {
        Box::pin(async move { _ = raw.bytes(&[0, 4, 0, 1, 0, 0, 0, 7, 0, 0, 0, 1]).await })
    });
}

#[test]
fn messages_of_drives_and_second_hellos() {
    let hello = Message::Hello(Hello { version: VERSION, nonce: Nonce([0; 32]) });
    let announce = Message::Announce { request: RequestId(1), length: 1, file_length: 1 };
    let stored = Message::Stored { request: RequestId(1), ticket: TicketId(1) };
    let failed = Message::Failed { request: RequestId(1), failure: Failure::Io };
    for message in [hello, announce, stored, failed] {
        assert_violation(move |raw| Box::pin(async move { _ = raw.send(&message).await }));
    }
}

#[test]
fn requests_that_never_began_and_numbers_used_twice() {
    assert_violation(|raw| Box::pin(async move { _ = raw.data(9, b"bytes").await }));
    assert_violation(|raw| {
        Box::pin(async move { _ = raw.send(&Message::Credit { request: RequestId(9), bytes: 1 }).await })
    });
    assert_violation(|raw| {
        Box::pin(async move { _ = raw.send(&Message::Cancel { request: RequestId(9) }).await })
    });
    assert_violation(|raw| {
        Box::pin(async move {
            raw.send(&read_message(4, 9, 2, range(0, 0), 1)).await;
            raw.send(&read_message(4, 9, 2, range(0, 0), 1)).await;
        })
    });
}

#[test]
fn a_handle_beyond_the_limit() {
    let kit = Kit::new(1);
    let (capability, secret) = kit.sealed(Group::Directory(directory(1)));
    let mut raw = kit.raw();
    let told = kit.run(async move {
        let (welcome, nonces) = raw.greet().await;
        raw.present(welcome.handles_max, &capability, &secret, &nonces).await;
        raw.message().await
    });
    assert_eq!(told, Some(Message::Goodbye(Goodbye::Violation)));
}

fn store_message(request: u32, len: u64) -> Message {
    let description = StoreDescription::new(file(2), 0, vec![range(0, len)]).unwrap();
    Message::Store { request: RequestId(request), handle: HandleNumber(0), description }
}

#[test]
fn bytes_of_a_read_beyond_a_store_and_beyond_its_credit() {
    assert_violation(|raw| {
        Box::pin(async move {
            raw.send(&read_message(1, 0, 2, range(0, 1000), 0)).await;
            raw.data(1, b"bytes").await;
        })
    });
    assert_violation(|raw| {
        Box::pin(async move {
            raw.send(&store_message(1, 3)).await;
            raw.data(1, b"more").await;
        })
    });
}

/// A drive whose objects take nothing gives no credit, and takes no more than its window.
#[test]
fn bytes_without_credit() {
    let kit = Kit::new(2);
    kit.files.take_nothing();
    let told = hostile(&kit, |raw| {
        Box::pin(async move {
            raw.send(&store_message(1, 10 << 20)).await;
            for _ in 0..3 {
                raw.data(1, &[0; 256 << 10]).await;
            }
        })
    });
    assert_eq!(told, Some(Message::Goodbye(Goodbye::Violation)));
    assert_eq!(kit.drive.counts().violations, 1);
}

#[test]
fn another_version() {
    let kit = Kit::new(3);
    let mut raw = kit.raw();
    let told = kit.run(async move {
        raw.send(&Message::Hello(Hello { version: 2, nonce: Nonce([0; 32]) })).await;
        raw.message().await
    });
    assert_eq!(told, Some(Message::Goodbye(Goodbye::Version)));
}

#[test]
fn a_client_that_says_nothing_or_something_else() {
    let kit = Kit::new(4);
    let silent = kit.raw();
    let mut wrong = kit.raw();
    kit.run(async move { wrong.bytes(b"\0ET / HTTP/1.1\r\n\r\n").await });
    kit.sim.run_for(Duration::from_secs(11));
    assert_eq!((kit.drive.counts().connected, kit.drive.counts().connections), (0, 0));
    drop(silent);
}

/// Reads without credit, and reads whose credit trickles, hold a place for a bounded time.
#[test]
fn reads_that_are_not_taken_are_given_up() {
    let kit = Kit::new(5);
    kit.files.add(file(2), 50 << 20);
    let (capability, secret) = kit.sealed(Group::Directory(directory(1)));
    let (mut raw, env) = (kit.raw(), kit.client_env());
    let drive = kit.drive.clone();
    kit.run(async move {
        use afs_env::EnvExt;
        let (_, nonces) = raw.greet().await;
        raw.present(0, &capability, &secret, &nonces).await;
        raw.send(&read_message(1, 0, 2, ByteRange::ALL, 0)).await;
        raw.send(&read_message(2, 0, 2, ByteRange::ALL, 1)).await;
        env.sleep(Duration::from_secs(1)).await;
        assert_eq!(drive.counts().in_progress, 2);
        for _ in 0..8 {
            env.sleep(Duration::from_secs(10)).await;
            raw.send(&Message::Credit { request: RequestId(2), bytes: 1 }).await;
        }
        assert_eq!(drive.counts().in_progress, 0);
    });
    kit.assert_quiet();
}

/// A client asks for much, with all the credit there is, and reads nothing. What the drive holds for it stays bounded, and after a
/// while it holds nothing.
#[test]
fn a_client_that_does_not_read() {
    let kit = Kit::new(6);
    kit.files.add(file(2), 100 << 20);
    let (capability, secret) = kit.sealed(Group::Directory(directory(1)));
    let mut raw = kit.raw();
    let raw = kit.run(async move {
        let (welcome, nonces) = raw.greet().await;
        raw.present(0, &capability, &secret, &nonces).await;
        for request in 0..2 * welcome.requests_max {
            raw.send(&read_message(request + 1, 0, 2, ByteRange::ALL, u32::MAX)).await;
        }
        raw
    });
    kit.sim.run_for(Duration::from_secs(5));
    let counts = kit.drive.counts();
    assert_eq!((counts.in_progress, counts.turned_away), (32, 32));
    let most = 32 * (768 << 10) + (1 << 20);
    assert!(kit.files.given.load(Ordering::Relaxed) <= most, "{:?}", kit.files.given);
    kit.sim.run_for(Duration::from_secs(60));
    let counts = kit.drive.counts();
    assert_eq!((counts.in_progress, counts.connected), (0, 0));
    drop(raw);
    kit.assert_quiet();
}

/// A client sends requests that fail without end, and reads no reply: the drive stops reading, and gives up.
#[test]
fn a_flood_of_failing_requests() {
    let kit = Kit::new(7);
    let mut raw = kit.raw();
    let drive = kit.drive.clone();
    let sent = kit.run(async move {
        raw.greet().await;
        let mut sent = 0;
        while raw.send(&read_message(sent + 1, 5, 2, range(0, 1), 1)).await && sent < 1_000_000 {
            sent += 1;
        }
        sent
    });
    assert!(sent < 100_000, "{sent} requests were taken");
    assert_eq!(drive.counts().connected, 0);
}

#[test]
fn connections_of_one_address_are_bounded() {
    let kit = Kit::with_limits(8, DriveLimits { connections_per_address: 3, ..DriveLimits::default() });
    let silent: Vec<_> = (0..3).map(|_| kit.open()).collect();
    let held: Vec<_> = (0..3).map(|_| (kit.open(), kit.drive.counts().connected)).collect();
    assert!(held.iter().all(|(_, connected)| *connected <= 3));
    assert_eq!(kit.drive.counts().turned_away, 3, "the silent ones, each for a newer one");
    let held: Vec<_> = held.into_iter().map(|(client, _)| (kit.present(&client), client)).collect();
    kit.sim.run_for(Duration::from_secs(1));
    let env = kit.client_env();
    let fourth = kit.run(async move { kit::open(&env).await.err() });
    assert!(matches!(fourth, Some(Lost::Cut | Lost::Stream(_))), "{fourth:?}");
    assert_eq!(kit.drive.counts().turned_away, 4);
    drop((silent, held));
    kit.assert_quiet();
    drop(kit.open());
}

/// Two hundred addresses, each with as many connections as it gets, opened again whenever they end: all places of the drive are taken
/// again and again by who says nothing.
#[test]
fn strangers_with_two_hundred_addresses_keep_nobody_out_who_has_a_capability() {
    let kit = Kit::with_limits(
        11,
        DriveLimits { connections: 64, connections_per_address: 4, ..DriveLimits::default() },
    );
    kit.files.add(file(2), 10);
    let early = kit.open();
    let handle = kit.present(&early);
    let early = kit.run(async move {
        read(&early, &handle, file(2), ByteRange::ALL).await.unwrap();
        (early, handle)
    });
    let opened = Arc::new(AtomicUsize::new(0));
    for number in 0..200u8 {
        let node = kit.sim.node(&format!("stranger {number}"), Ipv4Addr::new(10, 0, 1, number).into());
        for _ in 0..4 {
            let (env, opened) = (kit.sim.env(node), opened.clone());
            env.clone().spawn(Box::pin(async move {
                loop {
                    if let Ok(mut stream) = env.connect(kit::at()).await {
                        opened.fetch_add(1, Ordering::Relaxed);
                        _ = stream.read(&mut [0; 16]).await;
                    }
                    env.sleep(Duration::from_millis(50)).await;
                }
            }));
        }
    }
    let mut opened_before = 0;
    for _ in 0..20 {
        kit.sim.run_for(Duration::from_millis(500));
        let late = kit.open();
        let handle = kit.present(&late);
        let done = kit.run(async move { read(&late, &handle, file(2), ByteRange::ALL).await });
        assert!(done.is_ok(), "{done:?}");
        assert!(kit.drive.counts().connected <= 64);
        let all = opened.load(Ordering::Relaxed);
        assert!(all > opened_before + 64, "the places were taken {all} times");
        opened_before = all;
    }
    let (early, handle) = early;
    assert!(
        kit.run(async move { read(&early, &handle, file(2), ByteRange::ALL).await }).is_ok(),
        "all the time"
    );
}

#[test]
fn requests_of_one_address_are_bounded() {
    let kit = Kit::with_limits(9, DriveLimits { requests_per_address: 2, ..DriveLimits::default() });
    kit.files.add(file(2), 10 << 20);
    let client = kit.open();
    let handle = kit.present(&client);
    kit.run(async move {
        let first = client.read(&handle, file(2), ByteRange::ALL, FILE_VERSION).await.unwrap();
        let _second = client.read(&handle, file(2), ByteRange::ALL, FILE_VERSION).await.unwrap();
        let third = client.read(&handle, file(2), ByteRange::ALL, FILE_VERSION).await;
        assert_eq!(third.err(), Some(Failure::Busy.into()));
        drain(first).await.unwrap();
        assert!(client.read(&handle, file(2), ByteRange::ALL, FILE_VERSION).await.is_ok());
    });
}

#[test]
fn handles_are_bounded_at_the_client() {
    let kit = Kit::with_limits(10, DriveLimits { handles_per_connection: 2, ..DriveLimits::default() });
    kit.files.add(file(2), 10);
    let client = kit.open();
    let (capability, secret) = kit.sealed(Group::Directory(directory(1)));
    let first = client.present(&capability, &secret).unwrap();
    let second = client.present(&capability, &secret).unwrap();
    assert_eq!(client.present(&capability, &secret).err(), Some(Error::Handles));
    drop(first);
    let third = client.present(&capability, &secret).unwrap();
    drop(second);
    assert!(kit.run(async move { read(&client, &third, file(2), ByteRange::ALL).await }).is_ok());
}

// The other way round: drives that do what they should not.

fn welcome() -> Welcome {
    Welcome {
        version: VERSION,
        nonce: Nonce([3; 32]),
        drive: DriveId(0xd1),
        epoch: KeyEpoch(5),
        requests_max: 0,
        handles_max: 10,
        store_credit: 0,
    }
}

/// A drive at another port that greets and then does `act` with each request. Returns what a client gets that reads and stores.
fn false_drive(
    act: impl for<'a> Fn(&'a mut Raw, RequestId) -> BoxFuture<'a, ()> + Send + Sync + 'static,
) -> (Error, Error, Option<Lost>) {
    let kit = Kit::new(11);
    let (server, at) = (kit.sim.env(kit.drive_node), std::net::SocketAddr::from(([10, 0, 0, 1], 7009)));
    let mut listener = server.listen(at).unwrap();
    server.spawn(Box::pin(async move {
        let mut raw = Raw::new(listener.accept().await.unwrap());
        raw.message().await;
        raw.send(&Message::Welcome(welcome())).await;
        while let Some(message) = raw.message().await {
            if let Message::Read { request, .. } | Message::Store { request, .. } = message {
                act(&mut raw, request).await;
            }
        }
    }));
    let (env, (capability, secret)) = (kit.client_env(), kit.sealed(Group::Directory(directory(1))));
    kit.run(async move {
        let stream = env.connect(at).await.unwrap();
        let client = Client::open(env.clone(), stream, Security::Clear, Patience::default()).await.unwrap();
        let handle = client.present(&capability, &secret).unwrap();
        let read = read(&client, &handle, file(2), range(0, 1000)).await.unwrap_err();
        let description = StoreDescription::new(file(2), 0, vec![range(0, 2_000_000)]).unwrap();
        let store = async {
            let mut leaving = client.store(&handle, &description).await?;
            for _ in 0..2 {
                leaving.put(vec![0; 1_000_000].into()).await?;
            }
            leaving.finish().await
        };
        let store = store.await.unwrap_err();
        (read, store, client.lost())
    })
}

#[track_caller]
fn assert_false_drive_is_left(
    act: impl for<'a> Fn(&'a mut Raw, RequestId) -> BoxFuture<'a, ()> + Send + Sync + 'static,
) {
    let (read, store, lost) = false_drive(act);
    assert!(matches!(lost, Some(Lost::Violation(_) | Lost::Frame(_))), "{lost:?}");
    assert_eq!((&read, &store), (&lost.clone().unwrap().into(), &lost.unwrap().into()));
}

#[test]
fn a_drive_that_sends_more_than_was_asked_for() {
    assert_false_drive_is_left(|raw, request| {
        Box::pin(async move {
            _ = raw.send(&Message::Announce { request, length: 1001, file_length: 9999 }).await
        })
    });
    assert_false_drive_is_left(|raw, request| {
        Box::pin(async move {
            raw.send(&Message::Announce { request, length: 10, file_length: 10 }).await;
            raw.data(request.0, &[0; 11]).await;
        })
    });
    assert_false_drive_is_left(|raw, request| {
        Box::pin(async move { _ = raw.data(request.0, &[0; 1]).await })
    });
    assert_false_drive_is_left(|raw, _| Box::pin(async move { _ = raw.data(77, &[0; 1]).await }));
}

/// After a read has all its bytes, and after one was cancelled, no bytes of it are taken beyond those it had credit for.
#[test]
fn a_drive_that_sends_bytes_of_requests_that_are_over() {
    let (read, store, lost) = false_drive(|raw, request| {
        Box::pin(async move {
            raw.send(&Message::Failed { request, failure: Failure::Io }).await;
            raw.data(request.0, &[0; 1001]).await;
        })
    });
    assert!(matches!(lost, Some(Lost::Violation(_))), "{lost:?}");
    assert_eq!((read, store), (Failure::Io.into(), lost.unwrap().into()));
    let (read, store, lost) = false_drive(|raw, request| {
        Box::pin(async move {
            raw.send(&Message::Failed { request, failure: Failure::Io }).await;
            // It may have been on its way.
            if request == RequestId(1) {
                raw.data(request.0, &[0; 1000]).await;
            }
        })
    });
    assert_eq!((read, store, lost), (Failure::Io.into(), Failure::Io.into(), None));
}

#[test]
fn a_drive_that_replies_to_something_else() {
    assert_false_drive_is_left(|raw, request| {
        Box::pin(async move { _ = raw.send(&Message::Stored { request, ticket: TicketId(1) }).await })
    });
    assert_false_drive_is_left(|raw, request| {
        Box::pin(async move {
            for _ in 0..2 {
                raw.send(&Message::Announce { request, length: 10, file_length: 10 }).await;
            }
        })
    });
    assert_false_drive_is_left(|raw, request| {
        Box::pin(async move { _ = raw.send(&Message::Cancel { request }).await })
    });
    assert_false_drive_is_left(|raw, _| Box::pin(async move { _ = raw.bytes(&[0xee; 64]).await }));
}

/// A drive that says nothing any more: a request fails by itself, or with the connection.
#[test]
fn a_drive_that_does_nothing() {
    let (read, store, lost) = false_drive(|_, _| Box::pin(async move {}));
    assert!(matches!(read, Error::Stalled | Error::Lost(Lost::Silent)), "{read:?}");
    assert!(matches!(store, Error::Stalled | Error::Lost(Lost::Silent)), "{store:?}");
    assert!(matches!(lost, None | Some(Lost::Silent)), "{lost:?}");
}

#[test]
fn a_drive_that_announces_and_stops() {
    let (read, ..) = false_drive(|raw, request| {
        Box::pin(async move {
            raw.send(&Message::Announce { request, length: 10, file_length: 10 }).await;
            raw.data(request.0, &[0; 4]).await;
        })
    });
    assert_eq!(read, Error::Stalled);
}

#[test]
fn a_drive_that_never_greets() {
    let kit = Kit::new(12);
    let (server, at) = (kit.sim.env(kit.drive_node), std::net::SocketAddr::from(([10, 0, 0, 1], 7009)));
    let mut listener = server.listen(at).unwrap();
    server.spawn(Box::pin(async move {
        let _held = listener.accept().await.unwrap();
        std::future::pending::<()>().await;
    }));
    let env = kit.client_env();
    let lost = kit.run(async move {
        let stream = env.connect(at).await.unwrap();
        Client::open(env.clone(), stream, Security::Clear, Patience::default()).await.err()
    });
    assert_eq!(lost, Some(Lost::Handshake));
}
