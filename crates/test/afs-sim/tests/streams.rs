//! Tests of simulated TCP: the rules of every environment, and the faults that only this one has.

// Tests and their helpers may panic.
#![allow(clippy::unwrap_used)]

use crate::stream_rules;

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_env::io::{AsyncReadExt, AsyncWriteExt};
use afs_env::{ByteStream, EnvExt, EnvRef};
use afs_sim::{LinkConfig, NodeId, Sim, SimRng, SleepClock, StreamConfig, StreamFault, StreamMishap};
use stream_rules::{Hosts, Rule, pattern, stream_rules};

const PORT: u16 = 7000;
const HOUR: Duration = Duration::from_secs(3600);

struct Pair {
    sim: Sim,
    server: NodeId,
    client: NodeId,
}

fn pair(seed: u64) -> Pair {
    let sim = Sim::new(seed);
    let server = sim.node("server", Ipv4Addr::new(10, 0, 0, 1).into());
    let client = sim.node("client", Ipv4Addr::new(10, 0, 0, 2).into());
    Pair { sim, server, client }
}

fn at(port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], port))
}

impl From<&Pair> for Hosts {
    fn from(pair: &Pair) -> Self {
        Self { server: pair.sim.env(pair.server), client: pair.sim.env(pair.client), at: at(0) }
    }
}

fn run(pair: &Pair, rule: Rule) {
    pair.sim.block_on(pair.client, HOUR, rule).unwrap();
    pair.sim.run_for(HOUR);
    assert_eq!(pair.sim.stream_count(), 0, "connections are left");
}

stream_rules! { pair(1), run }

/// Observations of a reader.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct ReaderLog {
    bytes: Vec<u8>,
    /// `None` while it waits, then whether the end was clean.
    end: Option<Result<(), ErrorKind>>,
    /// Lengths of the reads.
    reads: Vec<usize>,
}

impl Pair {
    /// The server accepts connections, and records what the last one returns.
    fn serve(&self) -> Arc<Mutex<ReaderLog>> {
        let got = Arc::<Mutex<ReaderLog>>::default();
        let (env, noted) = (self.sim.env(self.server), got.clone());
        let mut listener = env.listen(at(PORT)).unwrap();
        let spawner = env.clone();
        env.spawn(Box::pin(async move {
            loop {
                let stream = listener.accept().await.unwrap();
                *noted.lock().unwrap() = ReaderLog::default();
                spawner.spawn(Box::pin(read_all(stream, noted.clone(), SimRng::new(5))));
            }
        }));
        got
    }

    /// The client sends `len` bytes of the pattern and shuts down. Returns the outcome, and holds the stream until
    /// then.
    fn send(&self, len: usize) -> Arc<Mutex<Option<Result<(), ErrorKind>>>> {
        let sent = Arc::<Mutex<Option<Result<(), ErrorKind>>>>::default();
        let (env, noted) = (self.sim.env(self.client), sent.clone());
        let connecting = env.connect(at(PORT));
        env.spawn(Box::pin(async move {
            let outcome = match connecting.await {
                Ok(mut stream) => write_all(&mut stream, len).await,
                Err(error) => Err(error.kind()),
            };
            *noted.lock().unwrap() = Some(outcome);
        }));
        sent
    }
}

/// Writes, shuts down, and waits for the other end to close.
async fn write_all(stream: &mut Box<dyn ByteStream>, len: usize) -> Result<(), ErrorKind> {
    let write = async {
        stream.write_all(&pattern(0, len)).await?;
        stream.shutdown().await?;
        stream.read(&mut [0]).await
    };
    write.await.map(drop).map_err(|error| error.kind())
}

async fn read_all(mut stream: Box<dyn ByteStream>, got: Arc<Mutex<ReaderLog>>, mut rng: SimRng) {
    loop {
        let mut piece = vec![0; usize::try_from(rng.between(1, 100_000)).unwrap()];
        let outcome = stream.read(&mut piece).await;
        let mut got = got.lock().unwrap();
        match outcome {
            Ok(0) => return got.end = Some(Ok(())),
            Ok(count) => {
                got.bytes.extend(&piece[..count]);
                got.reads.push(count);
            }
            Err(error) => return got.end = Some(Err(error.kind())),
        }
    }
}

fn take<T: Clone>(slot: &Mutex<T>) -> T {
    slot.lock().unwrap().clone()
}

#[test]
fn a_fault_comes_at_exactly_its_byte() {
    for after in [0, 1, 77_777, 199_999, 200_000] {
        for mishap in [StreamMishap::Reset, StreamMishap::Silence] {
            let pair = pair(after);
            pair.sim.break_stream(pair.client, pair.server, StreamFault { after, mishap });
            let got = pair.serve();
            let sent = pair.send(200_000);
            pair.sim.run_for(Duration::from_secs(2000));
            let (got, sent, after) = (take(&got), take(&sent), usize::try_from(after).unwrap());
            match mishap {
                StreamMishap::Silence => {
                    assert!(got.bytes == pattern(0, after), "{} of {after}", got.bytes.len());
                    assert_eq!((got.end, sent), (None, Some(Err(ErrorKind::TimedOut))));
                }
                _ => {
                    assert!(got.bytes.len() <= after && got.bytes == pattern(0, got.bytes.len()));
                    let reset = Some(Err(ErrorKind::ConnectionReset));
                    assert_eq!((got.end, sent), (reset, reset));
                }
            }
        }
    }
}

#[test]
fn a_stall_delays_the_rest_and_loses_nothing() {
    let pair = pair(3);
    let fault = StreamFault { after: 1000, mishap: StreamMishap::Stall(Duration::from_secs(60)) };
    pair.sim.break_stream(pair.client, pair.server, fault);
    let got = pair.serve();
    let sent = pair.send(200_000);
    pair.sim.run_for(Duration::from_secs(59));
    assert_eq!(take(&got).bytes.len(), 1000);
    pair.sim.run_for(Duration::from_secs(2));
    assert!(take(&got).bytes == pattern(0, 200_000));
    assert_eq!((take(&got).end, take(&sent)), (Some(Ok(())), Some(Ok(()))));
}

#[test]
fn the_next_connection_is_whole_again() {
    let pair = pair(4);
    pair.sim.break_stream(pair.client, pair.server, StreamFault { after: 5, mishap: StreamMishap::Reset });
    let got = pair.serve();
    pair.send(100);
    pair.sim.run_for(HOUR);
    assert_eq!(take(&got).end, Some(Err(ErrorKind::ConnectionReset)));
    pair.send(100);
    pair.sim.run_for(HOUR);
    assert_eq!((take(&got).end, take(&got).bytes), (Some(Ok(())), pattern(0, 100)));
}

#[test]
fn a_cut_is_silence_until_it_is_mended() {
    let pair = pair(5);
    let got = pair.serve();
    let sent = pair.send(20_000_000);
    pair.sim.run_for(Duration::from_millis(100));
    pair.sim.cut(pair.client, pair.server);
    pair.sim.run_for(Duration::from_millis(1));
    let before = take(&got).bytes.len();
    assert!(0 < before && before < 20_000_000);
    pair.sim.run_for(Duration::from_secs(300));
    assert_eq!((take(&got).bytes.len(), take(&got).end, take(&sent)), (before, None, None));
    pair.sim.mend(pair.client, pair.server);
    pair.sim.run_for(Duration::from_secs(300));
    assert!(take(&got).bytes == pattern(0, 20_000_000));
    assert_eq!((take(&got).end, take(&sent)), (Some(Ok(())), Some(Ok(()))));
}

#[test]
fn a_cut_without_end_is_given_up_by_the_sender_alone() {
    let pair = pair(6);
    let got = pair.serve();
    let sent = pair.send(20_000_000);
    pair.sim.run_for(Duration::from_millis(100));
    pair.sim.cut(pair.client, pair.server);
    pair.sim.run_for(HOUR);
    assert_eq!((take(&got).end, take(&sent)), (None, Some(Err(ErrorKind::TimedOut))));
    let unheard = pair.send(1);
    pair.sim.run_for(Duration::from_secs(126));
    assert_eq!(take(&unheard), None);
    pair.sim.run_for(Duration::from_secs(2));
    assert_eq!(take(&unheard), Some(Err(ErrorKind::TimedOut)));
}

#[test]
fn a_restart_of_the_server_kills_its_connections() {
    let pair = pair(7);
    pair.serve();
    let sent = pair.send(20_000_000);
    pair.sim.run_for(Duration::from_millis(100));
    pair.sim.crash(pair.server);
    pair.sim.run_for(Duration::from_secs(10));
    assert_eq!(take(&sent), None, "a machine without power says nothing");
    pair.sim.restart(pair.server);
    pair.sim.run_for(Duration::from_secs(60));
    assert_eq!(take(&sent), Some(Err(ErrorKind::ConnectionReset)));
    let refused = pair.send(1);
    pair.sim.run_for(Duration::from_secs(1));
    assert_eq!(take(&refused), Some(Err(ErrorKind::ConnectionRefused)));
    assert_eq!(pair.sim.stream_count(), 0);
}

#[test]
fn a_sleeping_machine_goes_on_where_it_was() {
    let pair = pair(8);
    let got = pair.serve();
    let sent = pair.send(20_000_000);
    pair.sim.run_for(Duration::from_millis(100));
    pair.sim.suspend(pair.server, SleepClock::GoesOn);
    pair.sim.run_for(Duration::from_secs(300));
    assert_eq!(take(&sent), None);
    pair.sim.resume(pair.server);
    pair.sim.run_for(Duration::from_secs(300));
    assert!(take(&got).bytes == pattern(0, 20_000_000));
}

#[test]
fn a_tap_sees_the_bytes_of_a_stream_that_arrive() {
    let pair = pair(14);
    let tap = pair.sim.tap_streams();
    pair.sim.break_stream(
        pair.client,
        pair.server,
        StreamFault { after: 70_000, mishap: StreamMishap::Reset },
    );
    pair.serve();
    pair.send(100_000);
    pair.sim.run_for(HOUR);
    let seen = tap.take();
    assert!(seen.iter().all(|seen| seen.to == at(PORT) && !seen.data.is_empty()));
    let bytes: Vec<u8> = seen.iter().flat_map(|seen| seen.data.to_vec()).collect();
    assert!(bytes == pattern(0, 70_000), "{}", bytes.len());
}

#[test]
fn bandwidth_and_latency_bound_a_transfer() {
    let pair = pair(9);
    let latency = Duration::from_millis(10);
    let link = LinkConfig { latency_min: latency, latency_max: latency, ..LinkConfig::default() };
    pair.sim.set_link(link);
    pair.sim.set_streams(StreamConfig {
        bytes_per_second: 1_000_000,
        send_buffer: 100_000,
        receive_buffer: 100_000,
        ..StreamConfig::default()
    });
    pair.serve();
    let sent = pair.send(10_000_000);
    pair.sim.run_for(Duration::from_secs(10));
    assert_eq!(take(&sent), None, "10 MB took less than 10 s at 1 MB/s");
    pair.sim.run_for(Duration::from_secs(10));
    assert_eq!(take(&sent), Some(Ok(())));
}

#[test]
fn reads_are_of_any_length() {
    let pair = pair(10);
    pair.sim.set_streams(StreamConfig { segment_max: 1460, ..StreamConfig::default() });
    let got = pair.serve();
    pair.send(1_000_000);
    pair.sim.run_for(HOUR);
    let reads = take(&got).reads;
    assert!(reads.len() > 100 && reads.iter().any(|read| *read < 100), "{reads:?}");
}

/// A simulation drawn from a seed: short and long buffers, loss, partitions, suspension, crashes and every fault.
fn any_world(seed: u64, rng: &mut SimRng, whole: bool) -> Pair {
    let pair = pair(seed);
    let per_million = |rng: &mut SimRng, most| u32::try_from(rng.below(most)).unwrap();
    let mut size = || usize::try_from(1 << rng.between(0, 18)).unwrap();
    let (segment_max, send_buffer, receive_buffer) = (size(), size(), size());
    pair.sim.set_streams(StreamConfig {
        segment_max,
        send_buffer,
        receive_buffer,
        bytes_per_second: rng.between(10_000, 100_000_000),
        stall_per_million: per_million(rng, 100_000),
        stall_max: Duration::from_secs(5),
        reset_per_million: if whole { 0 } else { per_million(rng, 20_000) },
        silence_per_million: if whole { 0 } else { per_million(rng, 20_000) },
    });
    pair.sim.set_link(LinkConfig { loss_per_million: per_million(rng, 100_000), ..LinkConfig::default() });
    pair
}

/// Lets time pass, with partitions, suspensions and perhaps a restart.
fn disturb(pair: &Pair, rng: &mut SimRng, whole: bool) {
    for _ in 0..rng.below(6) {
        pair.sim.run_for(rng.duration(Duration::ZERO, Duration::from_millis(300)));
        let (one, other) =
            if rng.chance(500_000) { (pair.client, pair.server) } else { (pair.server, pair.client) };
        match rng.below(if whole { 2 } else { 3 }) {
            0 => pair.sim.cut(one, other),
            1 => pair.sim.suspend(one, SleepClock::GoesOn),
            _ => pair.sim.restart(one),
        }
        pair.sim.run_for(rng.duration(Duration::ZERO, Duration::from_secs(20)));
        pair.sim.mend(one, other);
        pair.sim.resume(one);
    }
}

fn length(rng: &mut SimRng) -> usize {
    let most = 1 << rng.between(1, 16);
    usize::try_from(rng.below(most)).unwrap()
}

#[test]
fn received_bytes_are_a_prefix_of_the_sent_ones() {
    let (mut clean, mut broken) = (0, 0);
    for seed in afs_sim::crash::seeds(100) {
        let rng = &mut SimRng::new(seed);
        let pair = any_world(seed, rng, false);
        let len = length(rng);
        let (got, _sent) = (pair.serve(), pair.send(len));
        disturb(&pair, rng, false);
        pair.sim.run_for(HOUR);
        let got = take(&got);
        assert!(got.bytes == pattern(0, got.bytes.len()), "seed {seed}: not what was sent");
        assert!(got.bytes.len() <= len, "seed {seed}: more than was sent");
        if got.end == Some(Ok(())) {
            assert_eq!(got.bytes.len(), len, "seed {seed}: a clean end before the end");
            clean += 1;
        } else {
            broken += 1;
        }
    }
    assert!(clean > 0 && broken > 0, "{clean} streams were whole, {broken} broken");
}

#[test]
fn without_resets_and_silence_everything_arrives() {
    for seed in afs_sim::crash::seeds(100) {
        let rng = &mut SimRng::new(seed);
        let pair = any_world(seed, rng, true);
        let len = length(rng);
        let (got, sent) = (pair.serve(), pair.send(len));
        disturb(&pair, rng, true);
        pair.sim.run_for(HOUR * 24);
        let (got, sent) = (take(&got), take(&sent));
        assert_eq!((got.bytes.len(), got.end, sent), (len, Some(Ok(())), Some(Ok(()))), "seed {seed}");
        assert!(got.bytes == pattern(0, len), "seed {seed}");
        assert_eq!(pair.sim.stream_count(), 0, "seed {seed}: connections are left");
    }
}

/// What an end does until it drops its stream.
async fn use_briefly(mut stream: Box<dyn ByteStream>, env: EnvRef, mut rng: SimRng) {
    let (written, most) = (length(&mut rng), length(&mut rng));
    let limit = rng.duration(Duration::ZERO, Duration::from_secs(60));
    let work = async {
        stream.write_all(&pattern(0, written)).await?;
        if rng.chance(500_000) {
            stream.shutdown().await?;
        }
        let mut piece = vec![0; most + 1];
        while rng.chance(800_000) && stream.read(&mut piece).await? > 0 {}
        std::io::Result::Ok(())
    };
    // Dropped at any time, whatever has become of it.
    let _ = env.timeout(limit, work).await;
}

#[test]
fn nothing_is_left_of_a_connection_that_both_ends_have_dropped() {
    for seed in afs_sim::crash::seeds(100) {
        let rng = &mut SimRng::new(seed);
        let pair = any_world(seed, rng, false);
        let (server, client) = (pair.sim.env(pair.server), pair.sim.env(pair.client));
        let mut listener = server.listen(at(PORT)).unwrap();
        let (spawner, mut of_server) = (server.clone(), rng.fork());
        server.spawn(Box::pin(async move {
            while let Ok(stream) = listener.accept().await {
                spawner.spawn(Box::pin(use_briefly(stream, spawner.clone(), of_server.fork())));
            }
        }));
        for _ in 0..3 {
            let (env, connecting, of_client) = (client.clone(), client.connect(at(PORT)), rng.fork());
            client.spawn(Box::pin(async move {
                if let Ok(stream) = connecting.await {
                    use_briefly(stream, env, of_client).await;
                }
            }));
        }
        disturb(&pair, rng, false);
        pair.sim.run_for(HOUR * 24);
        assert_eq!(pair.sim.stream_count(), 0, "seed {seed}: connections are left");
    }
}

/// A client that sends 5,000 bytes to a server whose buffer has room for 1,000. Returns the client's end and the server's.
fn full(pair: &Pair) -> (Box<dyn ByteStream>, Box<dyn ByteStream>) {
    pair.sim.set_streams(StreamConfig { receive_buffer: 1000, ..StreamConfig::default() });
    let (server, client) = (pair.sim.env(pair.server), pair.sim.env(pair.client));
    let mut listener = server.listen(at(PORT)).unwrap();
    let ends = pair.sim.block_on(pair.client, HOUR, async move {
        let (stream, accepted) = afs_env::future::join(client.connect(at(PORT)), listener.accept()).await;
        let mut stream = stream.unwrap();
        stream.write_all(&pattern(0, 5000)).await.unwrap();
        (stream, accepted.unwrap())
    });
    pair.sim.run_for(Duration::from_secs(1));
    ends.unwrap()
}

/// The rest of the client's bytes waits for room, and the server's reset does not arrive.
#[test]
fn bytes_that_wait_for_room_keep_no_connection_that_both_ends_have_dropped() {
    let pair = pair(12);
    pair.sim.break_stream(
        pair.client,
        pair.server,
        StreamFault { after: 1000, mishap: StreamMishap::Silence },
    );
    drop(full(&pair));
    pair.sim.run_for(HOUR);
    assert_eq!(pair.sim.stream_count(), 0);
}

/// As with a probe of the window: RFC 9293, 3.8.6.1.
#[test]
fn a_writer_without_room_hears_of_an_end_that_was_closed_during_a_partition() {
    let pair = pair(13);
    let (mut writer, mut reader) = full(&pair);
    pair.sim.cut(pair.server, pair.client);
    let read = pair.sim.block_on(pair.server, HOUR, async move {
        reader.read_exact(&mut [0; 1000]).await.map_err(|error| error.kind())
    });
    assert_eq!(read.unwrap(), Ok(1000));
    pair.sim.run_for(HOUR / 12);
    pair.sim.mend(pair.server, pair.client);
    let written = pair.sim.block_on(pair.client, HOUR, async move {
        let written = writer.write_all(&pattern(0, 1 << 20)).await;
        written.map_err(|error| error.kind())
    });
    assert_eq!(written.unwrap(), Err(ErrorKind::ConnectionReset));
}

#[test]
fn one_seed_gives_one_run() {
    let run = |seed| {
        let rng = &mut SimRng::new(seed);
        let pair = any_world(seed, rng, false);
        let got = pair.serve();
        pair.send(100_000);
        disturb(&pair, rng, false);
        pair.sim.run_for(HOUR);
        (pair.sim.fingerprint(), take(&got))
    };
    for seed in 0..20 {
        assert!(run(seed) == run(seed), "seed {seed}");
    }
}

#[test]
fn a_connection_ends_with_the_task_that_has_it() {
    let pair = pair(11);
    let env = pair.sim.env(pair.server);
    let mut listener = env.listen(SocketAddr::from(([0, 0, 0, 0], PORT))).unwrap();
    let client = pair.sim.env(pair.client);
    let answered = pair.sim.block_on(pair.server, HOUR, async move {
        let connecting = client.connect(at(PORT));
        let (stream, accepted) = afs_env::future::join(connecting, listener.accept()).await;
        let mut accepted = accepted.unwrap();
        client.spawn(Box::pin(async move { drop(stream) }));
        accepted.read(&mut [0; 8]).await.unwrap()
    });
    assert_eq!(answered.unwrap(), 0);
}
