//! Benchmark of the data path over TCP on the loopback interface, beside what carries it.
//!
//! `cargo run --release -p afs-datapath --example path_throughput [megabytes] [rounds]`
//!
//! Prints MB/s of one large read, and the processor time of both ends together, for each of: TCP, the data path over TCP, TLS
//! (rustls, 256 KiB a write), the data path over TLS. The rounds take turns, and the median counts.

#![allow(clippy::expect_used)]
#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use afs_datapath::capability::{
    Access, ByteRange, Capability, DriveId, DriveKey, Group, KeyEpoch, Revocations, TicketId,
};
use afs_datapath::session::{
    Client, DATA_MAX, Drive, DriveLimits, Failure, Identity, Objects, Offer, Opened, Patience, Pieces,
    ReadRequest, Security, StoreRequest, Taken, accept,
};
use afs_datapath::tls::raw;
use afs_env::io::{AsyncReadExt, AsyncWriteExt};
use afs_env::{BoxFuture, ByteStream, EnvRef};
use afs_net::System;
use afs_wire::ids::{DataVersion, Fid, Uniquifier, VnodeId, VolumeId};
use bytes::Bytes;

const FILE: Fid = Fid::new(VolumeId(1), VnodeId(2), Uniquifier(1));

fn main() {
    let argument = |at| std::env::args().nth(at).and_then(|text| text.parse::<u64>().ok());
    let (megabytes, rounds) = (argument(1).unwrap_or(2000), argument(2).unwrap_or(5));
    let bytes = megabytes * 1_000_000;
    let bench = Bench::new(bytes);
    let kinds = ["TCP", "data path over TCP", "TLS", "data path over TLS"];
    let mut results = [const { Vec::new() }; 4];
    let mut processor = [0.0; 4];
    for _ in 0..rounds {
        for (kind, results) in results.iter_mut().enumerate() {
            let (begun, before) = (Instant::now(), processor_seconds());
            assert_eq!(bench.run(kind), bytes);
            processor[kind] += processor_seconds() - before;
            results.push(megabytes as f64 / begun.elapsed().as_secs_f64());
        }
    }
    let median = |results: &[f64]| {
        let mut sorted = results.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    };
    let gigabytes = (megabytes * rounds) as f64 / 1000.0;
    for ((kind, results), processor) in kinds.iter().zip(&results).zip(processor) {
        println!(
            "{kind}: {:.0} MB/s, {:.2} s of processor time for 1 GB",
            median(results),
            processor / gigabytes
        );
    }
    for (part, whole) in [(1, 0), (3, 2)] {
        println!(
            "{} / {}: {:.2}",
            kinds[part],
            kinds[whole],
            median(&results[part]) / median(&results[whole])
        );
    }
}

/// User and system time of this process so far, in steps of 10 ms: proc_pid_stat(5), fields 14 and 15.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("/proc");
    let fields = stat.rsplit(") ").next().expect("a name in parentheses").split(' ');
    fields.skip(11).take(2).map(|ticks| ticks.parse::<f64>().expect("a number")).sum::<f64>() / 100.0
}

struct Bench {
    system: Arc<System>,
    env: EnvRef,
    bytes: u64,
    identity: Identity,
    drive: Arc<Drive>,
    /// Where plain bytes are served, where they are in TLS, where the drive is.
    at: [SocketAddr; 3],
}

impl Bench {
    fn new(bytes: u64) -> Self {
        let system = System::new().expect("threads");
        let env = system.env();
        let identity = Identity::generate(&*env).expect("a key");
        let key = DriveKey::generate(&*env, DriveId(1), KeyEpoch(1));
        let drive = Drive::new(key, Revocations::default(), Arc::new(Endless(bytes)), DriveLimits::default());
        let listeners = [(); 3].map(|()| env.listen((Ipv4Addr::LOCALHOST, 0).into()).expect("a port"));
        let at = [0, 1, 2].map(|place: usize| listeners[place].local_addr());
        let [plain, tls, data] = listeners;
        for (mut listener, identity) in [(plain, None), (tls, Some(identity.clone()))] {
            let own = env.clone();
            env.spawn(Box::pin(async move {
                while let Ok(stream) = listener.accept().await {
                    own.spawn(Box::pin(pour(own.clone(), stream, identity.clone(), bytes)));
                }
            }));
        }
        env.spawn(Box::pin(accept(env.clone(), data, Offer::tls_or_clear(identity.clone()), drive.clone())));
        Self { system, env, bytes, identity, drive, at }
    }

    fn run(&self, kind: usize) -> u64 {
        let security = Security::Tls(self.identity.fingerprint());
        // In a task of the pool, as the cache manager does it.
        let (tell, told) = afs_env::sync::oneshot::channel();
        let work: BoxFuture<'static, ()> = match kind {
            0 | 2 => {
                let (env, at, identity) = (self.env.clone(), self.at[kind / 2], self.identity.clone());
                Box::pin(async move { _ = tell.send(drain(&env, at, (kind == 2).then_some(identity)).await) })
            }
            _ => {
                let security = if kind == 1 { Security::Clear } else { security };
                let (env, at, drive, bytes) = (self.env.clone(), self.at[2], self.drive.clone(), self.bytes);
                Box::pin(async move { _ = tell.send(read(&env, at, security, &drive, bytes).await) })
            }
        };
        self.env.spawn(work);
        self.system.block_on(told).expect("the task ends")
    }
}

async fn pour(env: EnvRef, stream: Box<dyn ByteStream>, identity: Option<Identity>, bytes: u64) {
    let mut stream = match identity {
        Some(identity) => raw::accept(&env, stream, &identity).await.expect("TLS"),
        None => stream,
    };
    let piece = vec![5; DATA_MAX];
    let mut left = bytes;
    while left > 0 {
        let len = left.min(DATA_MAX as u64) as usize;
        stream.write_all(&piece[..len]).await.expect("the reader lives");
        left -= len as u64;
    }
    stream.shutdown().await.expect("the reader lives");
    let _ = stream.read(&mut [0]).await;
}

async fn drain(env: &EnvRef, at: SocketAddr, identity: Option<Identity>) -> u64 {
    let stream = env.connect(at).await.expect("a connection");
    let mut stream = match identity {
        Some(identity) => raw::connect(env, stream, identity.fingerprint()).await.expect("TLS"),
        None => stream,
    };
    let mut buffer = vec![0; DATA_MAX];
    let mut came = 0;
    loop {
        match stream.read(&mut buffer).await.expect("the writer lives") {
            0 => return came,
            len => came += len as u64,
        }
    }
}

async fn read(env: &EnvRef, at: SocketAddr, security: Security, drive: &Drive, bytes: u64) -> u64 {
    let stream = env.connect(at).await.expect("a connection");
    let client = Client::open(env.clone(), stream, security, Patience::default()).await.expect("a session");
    let capability = Capability {
        drive: client.drive(),
        epoch: client.epoch(),
        group: Group::File(FILE),
        access: Access::READ,
        range: ByteRange::ALL,
        expires: u64::MAX,
        generation: drive.revocations.generation(Group::File(FILE)),
        holder: drive.key().holder(b"", b""),
    };
    let handle = client.present(&capability, &drive.key().seal(&capability)).expect("a handle");
    let range = ByteRange::at(0, bytes).expect("a range");
    let mut arriving = client.read(&handle, FILE, range, DataVersion(1)).await.expect("a read");
    let mut came = 0;
    while let Some(piece) = arriving.next().await.expect("bytes") {
        came += piece.len() as u64;
    }
    came
}

/// One file of this length, always the same bytes.
struct Endless(u64);

impl Objects for Endless {
    fn read(&self, request: ReadRequest) -> BoxFuture<'static, Result<Opened, Failure>> {
        let (file_length, length) = (self.0, request.range.len());
        Box::pin(async move {
            Ok(Opened { file_length, length, pieces: Box::new(Fives(vec![5; DATA_MAX].into())) })
        })
    }

    fn store(&self, _: StoreRequest, _: Taken) -> BoxFuture<'static, Result<TicketId, Failure>> {
        Box::pin(async { Err(Failure::NoSpace) })
    }
}

struct Fives(Bytes);

impl Pieces for Fives {
    fn next(&mut self, most: usize) -> BoxFuture<'_, Result<Bytes, Failure>> {
        let piece = self.0.slice(..most.min(self.0.len()));
        Box::pin(async move { Ok(piece) })
    }
}
