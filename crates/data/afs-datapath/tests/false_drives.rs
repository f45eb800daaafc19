//! Drives that announce what they like, stop where they like and send what nobody asked for: the right number of bytes or an
//! error, within a bounded time and in bounded memory.

#![allow(clippy::unwrap_used)]

use crate::kit;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use afs_datapath::capability::Group;
use afs_datapath::frame::{Failure, HEADER_LEN, Message, RequestId, encode_data};
use afs_datapath::session::{Arriving, Client, Error, Handle, Lost};
use afs_env::{EnvExt, EnvRef};
use kit::{Kit, Raw, VERSION, directory, drain, file, pattern, range, read};

/// Bytes that are asked for.
const WANTED: u64 = 1000;

/// A drive that waits for the first request, and then does `act`. Returns a client of it with a capability.
fn false_drive<F>(kit: &Kit, act: impl FnOnce(Raw, EnvRef) -> F + Send + 'static) -> (Client, Handle)
where
    F: Future<Output = ()> + Send + 'static,
{
    let client = kit::false_drive(kit, |mut raw, env| async move {
        next_read(&mut raw).await;
        act(raw, env).await;
    });
    let (capability, secret) = kit.sealed(Group::Directory(directory(1)));
    let presenting = client.clone();
    let handle = kit.run(async move { presenting.present(&capability, &secret).unwrap() });
    (client, handle)
}

/// Waits for a read, and returns its number.
async fn next_read(raw: &mut Raw) -> Option<RequestId> {
    loop {
        if let Message::Read { request, .. } = raw.message().await? {
            return Some(request);
        }
    }
}

/// What a drive sends that announces `length` bytes, and at which bytes a frame begins.
fn script(length: u64) -> (Vec<u8>, Vec<usize>) {
    let request = RequestId(1);
    let mut bytes = Message::Announce { request, length, file_length: length }.to_frame().to_vec();
    let mut starts = vec![0, bytes.len()];
    for piece in pattern(file(2), length.min(WANTED) as usize).chunks(200) {
        bytes.extend_from_slice(&encode_data(request, piece.len()));
        bytes.extend_from_slice(piece);
        starts.push(bytes.len());
    }
    (bytes, starts)
}

/// The bytes at which a script is cut: where a frame begins, one before and one behind, behind its header, and in its body.
fn cuts(script: &[u8], starts: &[usize]) -> Vec<usize> {
    let near = |at: &usize| [at.wrapping_sub(1), *at, at + 1, at + HEADER_LEN, at + HEADER_LEN + 50];
    let mut cuts: Vec<usize> = starts.iter().flat_map(near).filter(|at| *at <= script.len()).collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// What a client has of a drive that sends a script up to a cut, nothing of it for two minutes, and then the rest: the first
/// read, and another one afterwards. Between frames the drive shows that it lives.
fn stopped(bytes: Vec<u8>, cut: usize, is_between: bool) -> [Result<Vec<u8>, Error>; 2] {
    let kit = Kit::new(1);
    let (client, handle) = false_drive(&kit, move |mut raw, env| async move {
        raw.bytes(&bytes[..cut]).await;
        for _ in 0..12 {
            env.sleep(Duration::from_secs(10)).await;
            if is_between {
                raw.send(&Message::Alive).await;
            }
        }
        raw.bytes(&bytes[cut..]).await;
        if let Some(request) = next_read(&mut raw).await {
            raw.send(&Message::Announce { request, length: 1, file_length: 1 }).await;
            raw.data(request.0, b"x").await;
        }
        std::future::pending::<()>().await;
    });
    let env = kit.client_env();
    kit.run(async move {
        let first = read(&client, &handle, file(2), range(0, WANTED)).await;
        env.sleep(Duration::from_secs(100)).await;
        [first, read(&client, &handle, file(2), range(0, 1)).await]
    })
}

/// Whatever a drive announces, and wherever it stops: all bytes that it announced, or an error in time. What comes late is
/// dropped, and the connection serves the next read.
#[test]
fn a_drive_that_announces_any_length_and_stops_anywhere() {
    for length in [0, 1, 600, WANTED - 1, WANTED, WANTED + 1, u64::MAX] {
        let (script, starts) = script(length);
        for cut in cuts(&script, &starts) {
            let is_between = starts.contains(&cut);
            let [first, second] = stopped(script.clone(), cut, is_between);
            let told = format!("{length} bytes, stopped at {cut} of {}", script.len());
            let is_announced = cut >= starts[1];
            match first {
                Ok(bytes) => {
                    assert!(length <= WANTED && cut == script.len(), "{told}");
                    assert!(bytes == pattern(file(2), length as usize), "{told}");
                }
                Err(Error::Lost(Lost::Violation(_))) => assert!(length > WANTED && is_announced, "{told}"),
                Err(error) => {
                    assert_eq!(error, Error::Stalled, "{told}");
                    assert!(cut < script.len() && !(length > WANTED && is_announced), "{told}");
                }
            }
            let is_usable = is_between && !(length > WANTED && is_announced);
            assert_eq!(second.as_deref().ok(), is_usable.then_some(&b"x"[..]), "{told}: {second:?}");
        }
    }
}

/// Bytes after which it is clear that a client takes all that is sent.
const ALL: u64 = 4 << 20;

/// How a request ended before its drive goes on sending bytes of it.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Over {
    /// All of its bytes came, and the reader has not let go of it.
    Held,
    /// All of its bytes came.
    Complete,
    /// The reader has given it up.
    Cancelled,
    /// The drive said so itself.
    Failed,
}

impl Over {
    async fn end(self, raw: &mut Raw, env: &EnvRef) {
        let request = RequestId(1);
        match self {
            Over::Held | Over::Complete => {
                raw.send(&Message::Announce { request, length: WANTED, file_length: WANTED }).await;
                raw.data(1, &pattern(file(2), WANTED as usize)).await;
            }
            Over::Failed => _ = raw.send(&Message::Failed { request, failure: Failure::Io }).await,
            Over::Cancelled => {}
        }
        env.sleep(Duration::from_secs(5)).await;
    }

    /// Reads, and gives up after a second. Returns what is held of the request.
    async fn read(self, env: &EnvRef, client: &Client, handle: &Handle) -> Option<Arriving> {
        let opening = client.read(handle, file(2), range(0, WANTED), VERSION);
        let mut arriving = match (self, env.timeout(Duration::from_secs(1), opening).await) {
            (Over::Held | Over::Complete, Ok(Ok(arriving))) => arriving,
            (Over::Cancelled, Err(_)) => return None,
            (Over::Failed, Ok(Err(error))) => {
                assert_eq!(error, Failure::Io.into());
                return None;
            }
            (_, other) => panic!("{self:?}: {:?}", other.map(|opened| opened.err())),
        };
        if self == Over::Complete {
            drain(arriving).await.unwrap();
            return None;
        }
        while arriving.next().await.unwrap().is_some() {}
        Some(arriving)
    }
}

/// A drive that sends bytes of a request without end after it is over: what it had credit for is dropped, the next byte ends the
/// connection, and the client takes no more than what lay in the buffers of the stream.
#[test]
fn a_drive_that_sends_without_end_what_nobody_wants() {
    for over in [Over::Held, Over::Complete, Over::Cancelled, Over::Failed] {
        for piece in [1, 1 << 10, 256 << 10] {
            let kit = Kit::new(2);
            let sent = Arc::new(AtomicU64::new(0));
            let (counted, done) = (sent.clone(), Arc::new(AtomicU64::new(0)));
            let ended = done.clone();
            let (client, handle) = false_drive(&kit, move |mut raw, env| async move {
                over.end(&mut raw, &env).await;
                // Without end, but for a client that takes it all.
                while counted.load(Ordering::Relaxed) < ALL && raw.data(1, &vec![0; piece]).await {
                    counted.fetch_add((HEADER_LEN + piece) as u64, Ordering::Relaxed);
                }
                ended.store(1, Ordering::Relaxed);
            });
            let env = kit.client_env();
            let lost = kit.run(async move {
                let _held = over.read(&env, &client, &handle).await;
                let lost = client.ended().await;
                env.sleep(Duration::from_secs(60)).await;
                lost
            });
            assert!(matches!(lost, Lost::Violation(_)), "{over:?}, {piece}: {lost:?}");
            assert_eq!(done.load(Ordering::Relaxed), 1, "{over:?}, {piece}: the drive is sending still");
            // Both buffers of the stream, and what the client reads in one go.
            assert!(sent.load(Ordering::Relaxed) <= 1 << 20, "{over:?}, {piece}: {sent:?}");
        }
    }
}
