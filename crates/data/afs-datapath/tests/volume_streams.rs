//! Streams of volumes, whose length is not known before their end: whole or an error, once, and at any pace.

#![allow(clippy::unwrap_used)]

use crate::kit;

use std::time::Duration;

use afs_datapath::capability::{ByteRange, Group, Refusal, StreamName, TicketId};
use afs_datapath::frame::{Failure, HandleNumber, Message, OPEN_END, RequestId, StoreDescription};
use afs_datapath::session::{Client, Error, Handle};
use afs_env::EnvExt;
use afs_sim::{StreamFault, StreamMishap};
use afs_wire::ids::DataVersion;
use afs_wire::vol::TransactionId;
use bytes::Bytes;
use kit::{Kit, VOLUME, drain, pattern, piece};

fn name(number: u32) -> StreamName {
    StreamName { volume: VOLUME, transaction: TransactionId(-7), number }
}

fn present(kit: &Kit, client: &Client, stream: StreamName) -> Handle {
    let (capability, secret) = kit.sealed(Group::Stream(stream));
    client.present(&capability, &secret).unwrap()
}

async fn receive(client: &Client, handle: &Handle, stream: StreamName) -> Result<Vec<u8>, Error> {
    let mut arriving = client.receive_stream(handle, stream).await?;
    assert_eq!(arriving.length(), OPEN_END);
    let mut bytes = Vec::new();
    while let Some(piece) = arriving.next().await? {
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

async fn send(client: &Client, handle: &Handle, stream: StreamName, bytes: &[u8]) -> Result<(), Error> {
    let mut leaving = client.send_stream(handle, stream).await?;
    for part in bytes.chunks(70_000) {
        leaving.put(piece(part)).await?;
    }
    let ticket = leaving.finish().await?;
    assert_eq!(ticket, TicketId(0));
    Ok(())
}

/// Sends one stream and receives another at once, over one connection.
fn attempt(kit: &Kit, len: usize) -> [Result<(), Error>; 2] {
    let (out, into) = (name(1), name(2));
    let bytes = kit.files.add_stream(out, len);
    let sent = kit.files.add_stream(into, len);
    let [granted_out, granted_into] = [out, into].map(|stream| kit.sealed(Group::Stream(stream)));
    let env = kit.client_env();
    kit.run(async move {
        let client = match kit::open(&env).await {
            Ok(client) => client,
            Err(lost) => return [Err(lost.clone().into()), Err(lost.into())],
        };
        let handles =
            [granted_out, granted_into].map(|(capability, secret)| client.present(&capability, &secret));
        let [Ok(from), Ok(to)] = handles else { return handles.map(|handle| handle.map(drop)) };
        let receiving = async {
            let received = receive(&client, &from, out).await?;
            assert!(received == bytes, "other bytes, or fewer of them");
            Ok(())
        };
        let (received, sent) = afs_env::future::join(receiving, send(&client, &to, into, &sent)).await;
        [received, sent]
    })
}

/// What came to its end is whole.
fn check(kit: &Kit, sent: &Result<(), Error>, len: usize) {
    let taken = kit.files.taken(name(2));
    assert!(sent.is_err() || taken.is_some());
    assert!(taken.is_none_or(|taken| taken == pattern(name(2).fid(), len)), "half a stream");
    kit.assert_quiet();
}

#[test]
fn streams_go_both_ways_and_are_counted() {
    for len in [0, 1, 5_000_000] {
        let kit = Kit::new(30);
        let [received, sent] = attempt(&kit, len);
        assert_eq!((received, &sent), (Ok(()), &Ok(())), "{len}");
        let counts = kit.drive.counts();
        assert_eq!((counts.streams, counts.reads, counts.stores), (2, 0, 0));
        assert_eq!((counts.bytes_sent, counts.bytes_received), (len as u64, len as u64));
        assert_eq!((counts.failed, counts.violations), (0, 0));
        check(&kit, &sent, len);
    }
}

/// Every byte of both directions of a small conversation, which includes the borders of all frames.
#[test]
fn a_fault_at_every_byte_leaves_a_whole_stream_or_none() {
    let mishaps = [StreamMishap::Reset, StreamMishap::Silence, StreamMishap::Stall(Duration::from_secs(20))];
    for (to_drive, longest) in [(true, 700), (false, 500)] {
        let mut last_failure = 0;
        for after in 0..longest {
            for mishap in mishaps {
                let kit = Kit::new(after);
                let ends = [kit.client_node, kit.drive_node];
                let [from, to] = if to_drive { ends } else { [ends[1], ends[0]] };
                kit.sim.break_stream(from, to, StreamFault { after, mishap });
                let [received, sent] = attempt(&kit, 130);
                if received.is_err() || sent.is_err() {
                    last_failure = after;
                }
                check(&kit, &sent, 130);
            }
        }
        assert!(
            (200..longest - 1).contains(&last_failure),
            "the faults end within the conversation: {last_failure}"
        );
    }
}

#[test]
fn a_fault_within_large_frames_leaves_a_whole_stream_or_none() {
    let frame = afs_datapath::session::DATA_MAX as u64 + 12;
    for after in [frame - 1, frame, 2 * frame, 4 * frame + 400, 1_000_000, 2_999_990] {
        for to_drive in [true, false] {
            let kit = Kit::new(after);
            let ends = [kit.client_node, kit.drive_node];
            let [from, to] = if to_drive { ends } else { [ends[1], ends[0]] };
            kit.sim.break_stream(from, to, StreamFault { after, mishap: StreamMishap::Reset });
            let [_, sent] = attempt(&kit, 3_000_000);
            check(&kit, &sent, 3_000_000);
        }
    }
}

/// How fast a stream is, and how long its ends rest, is up to the call that it belongs to.
#[test]
fn a_stream_is_never_too_slow_and_outlives_its_capability() {
    let kit = Kit::new(31);
    let stream = name(1);
    kit.files.add_stream(stream, 0);
    let client = kit.open();
    let (handle, env) = (present(&kit, &client, stream), kit.client_env());
    let sent = kit.run(async move {
        let mut leaving = client.send_stream(&handle, stream).await?;
        for n in 0..4 {
            leaving.put(piece(&[n; 10])).await?;
            env.sleep(Duration::from_secs(200)).await;
        }
        leaving.finish().await
    });
    assert_eq!(sent, Ok(TicketId(0)));
    assert_eq!(kit.files.taken(stream).map(|bytes| bytes.len()), Some(40));
    kit.assert_quiet();
}

#[test]
fn a_slow_reader_of_a_stream_is_waited_for_within_bounded_memory() {
    let kit = Kit::new(32);
    let stream = name(1);
    let bytes = kit.files.add_stream(stream, 40_000_000);
    let client = kit.open();
    let (handle, env, given) = (present(&kit, &client, stream), kit.client_env(), kit.files.given.clone());
    let received = kit.run(async move {
        let mut arriving = client.receive_stream(&handle, stream).await.unwrap();
        env.sleep(Duration::from_secs(300)).await;
        let read = given.load(std::sync::atomic::Ordering::Relaxed);
        assert!(read < 6_000_000, "{read} bytes were read for a reader that takes none");
        let mut all = Vec::new();
        while let Some(piece) = arriving.next().await.unwrap() {
            all.extend_from_slice(&piece);
        }
        all
    });
    assert!(received == bytes);
    kit.assert_quiet();
}

fn refusal<T>(outcome: Result<T, Error>) -> Failure {
    match outcome.map(drop) {
        Err(Error::Failed(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_capability_is_for_one_stream_once_and_for_no_file() {
    let kit = Kit::new(33);
    let [one, other] = [name(1), name(2)];
    kit.files.add_stream(one, 10);
    kit.files.add_stream(other, 10);
    kit.files.add(one.fid(), 10);
    let client = kit.open();
    let (handle, of_volume) = (present(&kit, &client, one), kit.sealed(Group::Volume(VOLUME)));
    let of_volume = client.present(&of_volume.0, &of_volume.1).unwrap();
    kit.run(async move {
        let wrong = refusal(client.receive_stream(&handle, other).await);
        assert_eq!(wrong, Refusal::OtherObject.into(), "another stream");
        let part = ByteRange::new(0, 5).unwrap();
        for (range, version) in [(part, DataVersion(0)), (ByteRange::ALL, DataVersion(3))] {
            let wrong = refusal(client.read(&handle, one.fid(), range, version).await);
            assert_eq!(wrong, Failure::Invalid, "as a file");
        }
        let file = StoreDescription::new(one.fid(), 0, vec![part]).unwrap();
        let wrong = client.store(&handle, &file).await.unwrap();
        assert_eq!(refusal(wrong.put_and_finish(5).await), Failure::Invalid);
        // A capability for all files of the volume permits none of its streams.
        let read = client.read(&of_volume, one.fid(), ByteRange::ALL, kit::version()).await.unwrap();
        assert_eq!(drain(read).await.unwrap(), pattern(one.fid(), 10), "the file of that number");
        assert_eq!(receive(&client, &handle, one).await.unwrap().len(), 10);
        assert_eq!(refusal(client.receive_stream(&handle, one).await), Refusal::Revoked.into(), "twice");
    });
}

trait PutAndFinish {
    async fn put_and_finish(self, len: usize) -> Result<TicketId, Error>;
}

impl PutAndFinish for afs_datapath::session::Leaving {
    async fn put_and_finish(mut self, len: usize) -> Result<TicketId, Error> {
        self.put(Bytes::from(vec![0; len])).await?;
        self.finish().await
    }
}

#[test]
fn a_client_that_leaves_has_sent_nothing() {
    let kit = Kit::new(34);
    let stream = name(1);
    kit.files.add_stream(stream, 0);
    let client = kit.open();
    let handle = present(&kit, &client, stream);
    kit.run(async move {
        let mut leaving = client.send_stream(&handle, stream).await.unwrap();
        leaving.put(piece(&[1; 1000])).await.unwrap();
    });
    assert_eq!(kit.files.taken(stream), None);
    kit.assert_quiet();
}

/// Ends that are not those of the stream are violations: a wrong length, a second end, the end of a file.
#[test]
fn a_wrong_end_ends_the_connection() {
    for (case, lengths) in [vec![4], vec![6], vec![5, 5], vec![OPEN_END]].into_iter().enumerate() {
        let kit = Kit::new(35);
        let stream = name(1);
        kit.files.add_stream(stream, 0);
        let (capability, secret) = kit.sealed(Group::Stream(stream));
        let mut raw = kit.raw();
        kit.run(async move {
            let (_, nonces) = raw.greet().await;
            raw.present(0, &capability, &secret, &nonces).await;
            let (request, handle) = (RequestId(1), HandleNumber(0));
            let description = StoreDescription::of_stream(stream);
            raw.send(&Message::Store { request, handle, description }).await;
            raw.data(1, b"bytes").await;
            for length in lengths {
                raw.send(&Message::Announce { request, length, file_length: 0 }).await;
            }
            while raw.next().await.is_some() {}
        });
        assert_eq!(kit.drive.counts().violations, 1, "case {case}");
    }
}

#[test]
fn a_file_has_no_end_that_is_said() {
    let kit = Kit::new(36);
    let (capability, secret) = kit.sealed(Group::Volume(VOLUME));
    let mut raw = kit.raw();
    kit.run(async move {
        let (_, nonces) = raw.greet().await;
        raw.present(0, &capability, &secret, &nonces).await;
        let (request, handle) = (RequestId(1), HandleNumber(0));
        let description = StoreDescription::of_stream(name(1));
        raw.send(&Message::Store { request, handle, description }).await;
        raw.data(1, b"bytes").await;
        raw.send(&Message::Announce { request, length: 5, file_length: 0 }).await;
        while raw.next().await.is_some() {}
    });
    assert_eq!(kit.drive.counts().violations, 1);
}
