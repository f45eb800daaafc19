//! Rx endpoints in a simulation with a faulty network and hosts that crash.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_rpc::{BoxFuture, CallError, Limits, Rx, Security, ServerCall, Service};
use afs_rx::Config;
use afs_sim::{LinkConfig, NodeId, Sim, SimRng};
use afs_wire::rpc::ServiceId;
use bytes::Bytes;

const SERVICE: ServiceId = ServiceId(99);
const SERVER: u8 = 1;
/// Longer than the dead time and than every retransmission of a call on these links.
const LIMIT: Duration = Duration::from_secs(600);

fn address(host: u8) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), 7000)
}

/// Echoes the request, and counts the executions of each.
#[derive(Default)]
struct Echo(Mutex<BTreeMap<u64, u32>>);

impl Service for Echo {
    fn id(&self) -> ServiceId {
        SERVICE
    }

    fn serve(self: Arc<Self>, mut call: ServerCall) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let Ok(head) = call.read_exact(8).await else { return };
            let number = u64::from_be_bytes(head[..].try_into().unwrap());
            *self.0.lock().unwrap().entry(number).or_default() += 1;
            // Rx calls are half duplex: a reply begins when the request has been read.
            let Ok(data) = call.read_to_end(1 << 20).await else { return };
            for piece in [&head[..], &data].concat().chunks(10_000) {
                if call.write(Bytes::copy_from_slice(piece)).await.is_err() {
                    return;
                }
            }
            let _ = call.finish().await;
        })
    }
}

fn host(sim: &Sim, number: u8) -> (NodeId, Rx) {
    let node = sim.node(&format!("host{number}"), address(number).ip());
    let rx = sim.rx(node, sim.env(node), address(number), Config::default(), Limits::default());
    (node, rx)
}

fn bad_link(rng: &mut SimRng) -> LinkConfig {
    LinkConfig {
        latency_min: Duration::from_micros(rng.between(20, 2000)),
        latency_max: Duration::from_micros(rng.between(2000, 60_000)),
        loss_per_million: u32::try_from(rng.below(150_000)).unwrap(),
        duplicate_per_million: u32::try_from(rng.below(50_000)).unwrap(),
        straggle_per_million: u32::try_from(rng.below(20_000)).unwrap(),
    }
}

/// Sends a request of random length in pieces and compares the reply.
async fn call(rx: Rx, number: u64, mut rng: SimRng) -> Result<(), CallError> {
    let mut data = vec![0; rng.index(120_000)];
    rng.fill(&mut data);
    let connection = rx.connection(address(SERVER), SERVICE, Security::null());
    let mut call = connection.begin(Bytes::copy_from_slice(&number.to_be_bytes()), false).await?;
    for piece in data.chunks(rng.index(20_000) + 1) {
        call.write(Bytes::copy_from_slice(piece)).await?;
    }
    call.finish_request()?;
    let answer = call.read_to_end(1 << 20).await?;
    assert_eq!(answer[..8], number.to_be_bytes());
    let first = data.iter().zip(&answer[8..]).position(|(sent, got)| sent != got);
    assert!(
        answer[8..] == data,
        "call {number} came back changed: {} bytes for {}, from byte {first:?}",
        answer.len() - 8,
        data.len()
    );
    Ok(())
}

#[test]
fn calls_arrive_whole_and_once_over_a_bad_network() {
    for seed in afs_sim::crash::seeds(30) {
        let sim = Sim::new(seed);
        let mut rng = SimRng::new(seed);
        sim.set_link(bad_link(&mut rng));
        let (_, server) = host(&sim, SERVER);
        let echo = Arc::new(Echo::default());
        server.listen(echo.clone()).unwrap();
        let mut running = Vec::new();
        for client in 2..5 {
            let (node, rx) = host(&sim, client);
            for index in 0..8 {
                let work = call(rx.clone(), u64::from(client) * 100 + index, rng.fork());
                let done = Arc::new(Mutex::new(None));
                let slot = done.clone();
                sim.env(node).spawn(Box::pin(async move {
                    let result = work.await;
                    *slot.lock().unwrap() = Some(result);
                }));
                running.push(done);
            }
        }
        let all_done = || running.iter().all(|done| done.lock().unwrap().is_some());
        sim.run_until(LIMIT, all_done).unwrap_or_else(|hang| panic!("seed {seed}: {hang}"));
        for done in &running {
            let result = done.lock().unwrap().take().unwrap();
            assert!(result.is_ok(), "seed {seed}: {result:?}\n{}", sim.log_tail(60));
        }
        let counts = echo.0.lock().unwrap();
        assert!(
            counts.values().all(|count| *count == 1),
            "seed {seed}: a call was carried out twice: {counts:?}"
        );
        assert_eq!(counts.len(), 24);
    }
}

#[test]
fn calls_to_a_host_that_dies_end_in_bounded_time() {
    for seed in afs_sim::crash::seeds(30) {
        let sim = Sim::new(seed);
        let mut rng = SimRng::new(seed);
        let (server_node, server) = host(&sim, SERVER);
        server.listen(Arc::new(Echo::default())).unwrap();
        let (node, rx) = host(&sim, 2);
        sim.set_link(bad_link(&mut rng));
        let ended = Arc::new(Mutex::new(0));
        for number in 0..10 {
            let work = call(rx.clone(), number, rng.fork());
            let ended = ended.clone();
            sim.env(node).spawn(Box::pin(async move {
                let _ = work.await;
                *ended.lock().unwrap() += 1;
            }));
        }
        sim.run_for(rng.duration(Duration::ZERO, Duration::from_millis(300)));
        match rng.below(3) {
            0 => sim.crash(server_node),
            1 => sim.cut(server_node, node),
            _ => sim.cut(node, server_node),
        }
        sim.run_until(LIMIT, || *ended.lock().unwrap() == 10)
            .unwrap_or_else(|hang| panic!("seed {seed}: {hang}"));
    }
}

/// As a socket is: otherwise a world in which endpoints come and go holds something of each to its end.
#[test]
fn an_endpoint_that_is_dropped_releases_its_address() {
    let sim = Sim::new(1);
    let (node, first) = host(&sim, SERVER);
    let (other, _) = host(&sim, 2);
    let noise = sim.bind(other, SocketAddr::new(address(2).ip(), 9999), Arc::new(Deaf));
    let unclaimed = || {
        noise.send(address(SERVER), Bytes::from_static(b"a datagram"));
        sim.run_for(Duration::from_secs(1));
        sim.net_stats().no_port
    };
    assert_eq!(unclaimed(), 0);
    // The second has the address already when the first is dropped.
    let second = sim.rx(node, sim.env(node), address(SERVER), Config::default(), Limits::default());
    drop(first);
    assert_eq!(unclaimed(), 0, "the address of the second was released");
    let weak = second.downgrade();
    drop(second);
    assert!(weak.upgrade().is_none());
    assert_eq!(unclaimed(), 1);
}

#[test]
fn random_datagrams_do_no_harm() {
    for seed in afs_sim::crash::seeds(30) {
        let sim = Sim::new(seed);
        let mut rng = SimRng::new(seed);
        let (_, server) = host(&sim, SERVER);
        server.listen(Arc::new(Echo::default())).unwrap();
        let (node, rx) = host(&sim, 2);
        let other: SocketAddr = SocketAddr::new(address(2).ip(), 9999);
        let noise = sim.bind(node, other, Arc::new(Deaf));
        for _ in 0..500 {
            let mut data = vec![0; rng.index(2000)];
            rng.fill(&mut data);
            plausible_header(&mut data, &mut rng);
            noise.send(address(SERVER), Bytes::from(data));
        }
        sim.run_for(Duration::from_secs(1));
        let outcome = sim.block_on(node, LIMIT, call(rx, 1, rng.fork()));
        outcome
            .unwrap_or_else(|hang| panic!("seed {seed}: {hang}"))
            .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    }
}

struct Deaf;

impl afs_sim::PortHandler for Deaf {
    fn service(&self, _: &afs_sim::Port, _: afs_rpc::Instant, _: Vec<(SocketAddr, Bytes)>, _: bool) {}
}

/// Gives most of the random datagrams a packet type, flags and a service that pass the first checks.
fn plausible_header(data: &mut [u8], rng: &mut SimRng) {
    if data.len() < 28 || rng.chance(200_000) {
        return;
    }
    data[8..12].copy_from_slice(&u32::try_from(rng.below(3)).unwrap().to_be_bytes());
    data[12..16].copy_from_slice(&u32::try_from(rng.below(4)).unwrap().to_be_bytes());
    data[20] = u8::try_from(rng.below(14)).unwrap();
    data[23] = u8::try_from(rng.below(2)).unwrap();
    data[26..28].copy_from_slice(&SERVICE.0.to_be_bytes());
}

#[test]
fn one_seed_is_one_run_with_rx_too() {
    let run = |seed| {
        let sim = Sim::new(seed);
        let mut rng = SimRng::new(seed);
        sim.set_link(bad_link(&mut rng));
        let (_, server) = host(&sim, SERVER);
        server.listen(Arc::new(Echo::default())).unwrap();
        let (node, rx) = host(&sim, 2);
        let _ = sim.block_on(node, LIMIT, call(rx, 1, rng.fork()));
        sim.fingerprint()
    };
    for seed in 0..5 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}
