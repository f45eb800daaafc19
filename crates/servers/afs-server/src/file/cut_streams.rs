//! Tests of file operations over a byte stream that is cut at every byte.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_env::io::{AsyncReadExt, AsyncWriteExt};
use afs_rpc::future::yield_now;
use afs_rpc::{ByteListener, ByteStream, EnvExt};
use afs_sim::{StreamFault, StreamMishap};
use afs_wire::error::AbortCode;
use afs_wire::fs::SetStatus;
use afs_wire::ids::Fid;
use bytes::Bytes;

use super::fetch::Part;
use super::store_change::Change;
use super::storing::SHORT_DATA;
use super::tests::{Desk, bytes_on};
use crate::flow::{Broken, Sink, Source, Stopped};
use crate::rig::SERVER_IP;

/// The address at which the server accepts streams.
const DATA: SocketAddr = SocketAddr::new(IpAddr::V4(SERVER_IP), 7100);
/// The first range becomes a chunk before the first byte of the second arrives: it is larger than what is
/// kept in a row.
const RANGES: [(u64, u64); 2] = [(0, 16_400), (20_000, 200)];
const SENT: usize = 16_600;

/// A byte stream as source and sink.
struct Carried(Box<dyn ByteStream>);

impl Source for Carried {
    async fn next(&mut self, most: usize) -> Result<Vec<Bytes>, Broken> {
        let mut piece = vec![0; most.min(4096)];
        let count = self.0.read(&mut piece).await.map_err(|_| Broken)?;
        piece.truncate(count);
        Ok(if count == 0 { Vec::new() } else { vec![piece.into()] })
    }
}

impl Sink for Carried {
    type Error = std::io::Error;

    async fn put(&mut self, piece: Bytes) -> std::io::Result<()> {
        self.0.write_all(&piece).await
    }
}

/// The client's view of its stream: the reply, or the error.
type Seen = Arc<Mutex<Option<Result<Vec<u8>, ErrorKind>>>>;

/// How a stream ends early.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cut {
    Reset,
    Silence,
    /// The client closes it.
    End,
}

struct Bench {
    desk: Desk,
    fid: Fid,
    /// Always present, except while a stream is awaited.
    listener: Option<Box<dyn ByteListener>>,
}

impl Bench {
    fn new(seed: u64) -> Self {
        let desk = Desk::new(seed);
        let fid = desk.client.create(desk.cell.root(), "f").unwrap().fid;
        desk.client.store(fid, 0, b"as it was").unwrap();
        let listener = desk.env().listen(DATA).unwrap();
        Bench { desk, fid, listener: Some(listener) }
    }

    fn change(&self) -> Change {
        let (fid, ranges, status) = (self.fid, RANGES.to_vec(), SetStatus::default());
        Change { fid, status, file_length: 1 << 30, ranges, grown_to: 0, expected: None }
    }

    fn cut(&self, at: usize, cut: Cut) {
        let mishap = match cut {
            Cut::Reset => StreamMishap::Reset,
            Cut::Silence => StreamMishap::Silence,
            Cut::End => return,
        };
        let fault = StreamFault { after: at as u64, mishap };
        self.desk.cell.sim.break_stream(self.desk.client.node, self.desk.cell.server, fault);
    }

    /// The client sends bytes, in two writes, and waits for a reply.
    fn send(&self, sent: Vec<u8>) -> Seen {
        let (seen, world) = (Seen::default(), self.desk.cell.world());
        let (env, noted) = (world.env(self.desk.client.node), seen.clone());
        let connecting = env.connect(DATA);
        env.spawn(Box::pin(async move {
            let work = async move {
                let mut stream = connecting.await?;
                let (first, second) = sent.split_at(sent.len().min(RANGES[0].1 as usize));
                stream.write_all(first).await?;
                yield_now().await;
                stream.write_all(second).await?;
                stream.shutdown().await?;
                let mut answer = Vec::new();
                stream.read_to_end(&mut answer).await?;
                Ok::<_, std::io::Error>(answer)
            };
            *noted.lock().unwrap() = Some(work.await.map_err(|error| error.kind()));
        }));
        seen
    }

    /// The server runs `work` on the next stream.
    fn serve<T: Send + 'static, F: Future<Output = T> + Send>(
        &mut self,
        work: impl FnOnce(Carried) -> F + Send + 'static,
    ) -> T {
        let mut listener = self.listener.take().unwrap();
        let served = async move {
            let stream = listener.accept().await.unwrap();
            (work(Carried(stream)).await, listener)
        };
        let (done, listener) = self.desk.run(served);
        self.listener = Some(listener);
        done
    }

    /// The server takes the bytes of one store from the next stream, and replies with a code.
    fn store(&mut self) -> AbortCode {
        let (files, context, change) = (self.desk.files(), self.desk.context(), self.change());
        self.serve(move |mut stream| async move {
            let stored = async {
                let found = files.find_to_store(&context, change.fid, &change.status).await?;
                files.store(&mut stream, &context, found, change).await
            };
            let code = stored.await.err().unwrap_or(AbortCode::OK);
            let _ = stream.put(Bytes::copy_from_slice(&code.0.to_be_bytes())).await;
            code
        })
    }
}

fn pattern() -> Vec<u8> {
    (0..SENT).map(|at| (at * 7 + at / 256) as u8 | 1).collect()
}

/// Cuts a store at a byte: it fails, its client sees the failure, and nothing of the store is left.
fn check(bench: &mut Bench, at: usize, cut: Cut) {
    let before = bench.desk.left();
    bench.cut(at, cut);
    let sent = if cut == Cut::End { pattern()[..at].to_vec() } else { pattern() };
    let seen = bench.send(sent);
    assert_eq!(bench.store(), SHORT_DATA, "{cut:?} after {at} bytes");
    let wait = if cut == Cut::Silence { Duration::from_secs(2000) } else { Duration::from_secs(1) };
    bench.desk.cell.sim.run_for(wait);
    let told = seen.lock().unwrap().take().unwrap();
    match cut {
        Cut::End => assert_eq!(told, Ok(SHORT_DATA.0.to_be_bytes().to_vec()), "after {at} bytes"),
        Cut::Reset => assert_eq!(told, Err(ErrorKind::ConnectionReset), "after {at} bytes"),
        Cut::Silence => assert_eq!(told, Err(ErrorKind::TimedOut), "after {at} bytes"),
    }
    assert_eq!(bench.desk.left(), before, "{cut:?} after {at} bytes");
}

#[test]
fn a_store_over_a_stream_that_is_cut_at_any_byte_leaves_nothing() {
    let mut bench = Bench::new(301);
    let before = bench.desk.client.fetch_status(bench.fid).unwrap().status;
    for at in 0..SENT {
        check(&mut bench, at, if at % 2 == 0 { Cut::Reset } else { Cut::End });
    }
    for at in [0, 1, 16_383, 16_384, 16_399, 16_400, 16_401, SENT - 1] {
        for cut in [Cut::Reset, Cut::End, Cut::Silence] {
            check(&mut bench, at, cut);
        }
    }
    assert_eq!(bench.desk.client.fetch_status(bench.fid).unwrap().status, before);
    assert_eq!(bench.desk.client.read(bench.fid), b"as it was");
    // The complete store is one change.
    let seen = bench.send(pattern());
    assert_eq!(bench.store(), AbortCode::OK);
    bench.desk.cell.sim.run_for(Duration::from_secs(1));
    assert_eq!(seen.lock().unwrap().take(), Some(Ok(vec![0; 4])));
    let (read, sent) = (bench.desk.client.read(bench.fid), pattern());
    assert!(
        read[..16_400] == sent[..16_400]
            && read[16_400..20_000] == [0; 3600]
            && read[20_000..] == sent[16_400..]
    );
}

/// Chunks written before the cut stay until the server detects the cut, and no longer.
#[test]
fn chunks_of_a_cut_store_are_discarded_with_it() {
    let mut bench = Bench::new(302);
    let before = bench.desk.left();
    bench.cut(16_500, Cut::Silence);
    bench.send(pattern());
    let (env, drive, held) = (bench.desk.env(), bench.desk.cell.drive.clone(), Arc::new(Mutex::new(0)));
    let (noted, look) = (held.clone(), env.sleep(Duration::from_secs(20)));
    env.spawn(Box::pin(async move {
        look.await;
        *noted.lock().unwrap() = bytes_on(&drive);
    }));
    assert_eq!(bench.store(), SHORT_DATA);
    assert!(*held.lock().unwrap() >= before.bytes_on_drive + RANGES[0].1, "the first range was there");
    assert_eq!(bench.desk.left(), before);
}

#[test]
fn a_fetch_over_a_stream_that_is_cut_ends_and_its_client_hears_of_it() {
    let mut bench = Bench::new(303);
    let (content, fid) = (vec![7; 300_000], bench.fid);
    bench.desk.client.store(fid, 0, &content).unwrap();
    let never = 1 << 30;
    for at in (0..300_000).step_by(9973).chain([1, 299_999, never]) {
        let (server, client) = (bench.desk.cell.server, bench.desk.client.node);
        let fault = StreamFault { after: at, mishap: StreamMishap::Reset };
        bench.desk.cell.sim.break_stream(server, client, fault);
        let seen = bench.send(Vec::new());
        let (files, context) = (bench.desk.files(), bench.desk.context());
        let sent = bench.serve(move |mut stream| async move {
            let part = Part { fid, position: 0, length: 1 << 40 };
            let (data, tail) = files.open_data(&context, part).await.unwrap();
            !matches!(files.send_data(&mut stream, data, Vec::new(), &tail).await, Err(Stopped::Volume(_)))
        });
        assert!(sent, "the volume gives all");
        bench.desk.cell.sim.run_for(Duration::from_secs(5));
        match seen.lock().unwrap().take().unwrap() {
            Ok(read) => assert!(at == never && read[..300_000] == content),
            Err(kind) => assert_eq!(kind, ErrorKind::ConnectionReset, "after {at} bytes"),
        }
    }
    assert!(bench.desk.left().is_idle);
}
