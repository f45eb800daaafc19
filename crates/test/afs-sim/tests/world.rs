//! Tests of the clock, the scheduler, the network and the incarnations of nodes.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_rpc::sync::{self, Notify, Semaphore};
use afs_rpc::{EnvExt, Instant};
use afs_sim::{LinkConfig, NodeId, Port, PortHandler, Sim, WorldConfig};
use bytes::Bytes;

fn ip(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))
}

fn address(last: u8) -> SocketAddr {
    SocketAddr::new(ip(last), 7000)
}

#[test]
fn time_passes_only_by_jumps() {
    let sim = Sim::new(1);
    let node = sim.node("a", ip(1));
    let env = sim.env(node);
    let slept = sim.block_on(node, Duration::from_secs(7200), async move {
        let before = env.now();
        env.sleep(Duration::from_secs(3600)).await;
        env.now() - before
    });
    assert_eq!(slept, Ok(Duration::from_secs(3600)));
}

#[test]
fn a_wait_that_cannot_end_is_reported_as_a_hang() {
    let sim = Sim::new(1);
    let node = sim.node("a", ip(1));
    let hang = sim.block_on(node, Duration::from_secs(60), std::future::pending::<()>()).unwrap_err();
    assert_eq!(hang.at, Instant::from_nanos(1) + Duration::from_secs(60));
}

#[test]
fn tasks_that_wake_each_other_for_ever_are_found() {
    let sim = Sim::new(1);
    let node = sim.node("a", ip(1));
    let spin = async {
        loop {
            afs_rpc::future::yield_now().await;
        }
    };
    let hang = sim.block_on(node, Duration::from_secs(1), async {
        spin.await;
    });
    assert!(hang.unwrap_err().reason.contains("without end"));
}

#[test]
fn a_dropped_timer_leaves_nothing_behind() {
    let sim = Sim::new(1);
    let node = sim.node("a", ip(1));
    let env = sim.env(node);
    let inner = env.clone();
    let timed = sim.block_on(node, Duration::from_secs(5), async move {
        inner.timeout(Duration::from_secs(100), async {}).await
    });
    assert_eq!(timed, Ok(Ok(())));
    sim.run_for(Duration::from_secs(1));
    assert_eq!(sim.task_count(), 0);
}

/// Echoes every datagram, slightly changed, and keeps it.
#[derive(Default)]
struct Echo {
    got: Mutex<Vec<(Instant, Bytes)>>,
    answer: bool,
}

impl PortHandler for Echo {
    fn service(&self, port: &Port, now: Instant, arrived: Vec<(SocketAddr, Bytes)>, _: bool) {
        for (from, data) in arrived {
            if self.answer {
                port.send(from, data.clone());
            }
            self.got.lock().unwrap().push((now, data));
        }
    }
}

struct Pair {
    sim: Sim,
    nodes: [NodeId; 2],
    ports: [Port; 2],
    handlers: [Arc<Echo>; 2],
}

fn pair(seed: u64) -> Pair {
    let sim = Sim::new(seed);
    let nodes = [sim.node("a", ip(1)), sim.node("b", ip(2))];
    let handlers = [Arc::new(Echo::default()), Arc::new(Echo { answer: true, ..Echo::default() })];
    let ports = [
        sim.bind(nodes[0], address(1), handlers[0].clone()),
        sim.bind(nodes[1], address(2), handlers[1].clone()),
    ];
    Pair { sim, nodes, ports, handlers }
}

fn blast(pair: &Pair, count: u32) {
    for number in 0..count {
        pair.ports[0].send(address(2), Bytes::copy_from_slice(&number.to_be_bytes()));
    }
    pair.sim.run_for(Duration::from_secs(10));
}

#[test]
fn a_perfect_link_carries_everything() {
    let pair = pair(3);
    blast(&pair, 100);
    assert_eq!(pair.handlers[1].got.lock().unwrap().len(), 100);
    assert_eq!(pair.handlers[0].got.lock().unwrap().len(), 100);
}

#[test]
fn a_bad_link_loses_doubles_and_reorders() {
    let pair = pair(3);
    pair.sim.set_link(LinkConfig {
        loss_per_million: 200_000,
        duplicate_per_million: 100_000,
        ..LinkConfig::default()
    });
    blast(&pair, 1000);
    let got: Vec<_> = pair.handlers[1].got.lock().unwrap().iter().map(|(_, data)| data.clone()).collect();
    let stats = pair.sim.net_stats();
    assert!(stats.lost > 200 && stats.doubled > 50, "{stats:?}");
    assert!(!got.is_sorted());
}

#[test]
fn one_seed_is_one_run() {
    let run = |seed| {
        let pair = pair(seed);
        pair.sim.set_link(LinkConfig { loss_per_million: 100_000, ..LinkConfig::default() });
        blast(&pair, 200);
        pair.sim.fingerprint()
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn a_translator_lets_in_only_what_it_expects() {
    let pair = pair(5);
    let heard = |node: usize| pair.handlers[node].got.lock().unwrap().len();
    let public = SocketAddr::new(ip(99), 20_000);
    pair.sim.translate(pair.nodes[0], public.ip(), Duration::from_secs(30));
    let send = |to| {
        pair.ports[1].send(to, Bytes::from_static(b"unasked"));
        pair.sim.run_for(Duration::from_secs(1));
    };
    send(public);
    send(address(1));
    assert_eq!(heard(0), 0);
    blast(&pair, 1);
    assert_eq!((heard(1), heard(0)), (1, 1));
    send(public);
    // A port that the node has sent nothing to, and the address inside.
    let stranger = pair.sim.bind(pair.nodes[1], SocketAddr::new(ip(2), 7001), Arc::new(Echo::default()));
    stranger.send(public, Bytes::from_static(b"unasked"));
    send(address(1));
    assert_eq!(heard(0), 2);
    pair.sim.run_for(Duration::from_secs(30));
    send(public);
    assert_eq!(heard(0), 2);
    // It has another port now.
    blast(&pair, 1);
    send(public);
    assert_eq!(heard(0), 3);
    send(SocketAddr::new(ip(99), 20_001));
    assert_eq!(heard(0), 4);
}

#[test]
fn a_cut_stops_one_direction_only() {
    let pair = pair(4);
    pair.sim.cut(pair.nodes[1], pair.nodes[0]);
    blast(&pair, 10);
    assert_eq!(pair.handlers[1].got.lock().unwrap().len(), 10);
    assert_eq!(pair.handlers[0].got.lock().unwrap().len(), 0);
    pair.sim.mend(pair.nodes[1], pair.nodes[0]);
    blast(&pair, 10);
    assert_eq!(pair.handlers[0].got.lock().unwrap().len(), 10);
}

#[test]
fn a_crashed_node_is_silent_and_its_tasks_are_gone() {
    let pair = pair(5);
    let env = pair.sim.env(pair.nodes[1]);
    let alive = Arc::new(());
    let (held, clock) = (alive.clone(), env.clone());
    env.spawn(Box::pin(async move {
        let _held = held;
        clock.sleep(Duration::from_secs(1000)).await;
    }));
    pair.sim.run_for(Duration::from_secs(1));
    assert_eq!(Arc::strong_count(&alive), 2);
    pair.sim.crash(pair.nodes[1]);
    assert_eq!(Arc::strong_count(&alive), 1);
    blast(&pair, 10);
    assert_eq!(pair.sim.net_stats().no_port, 10);

    // The next incarnation replies; the environment of the old one does nothing.
    pair.sim.restart(pair.nodes[1]);
    env.spawn(Box::pin(async { unreachable!("a task of a dead node") }));
    let _port = pair.sim.bind(pair.nodes[1], address(2), pair.handlers[1].clone());
    blast(&pair, 10);
    assert_eq!(pair.handlers[1].got.lock().unwrap().len(), 10);
}

#[test]
fn the_wall_clock_jumps_and_the_other_does_not() {
    let sim = Sim::new(1);
    let node = sim.node("a", ip(1));
    let env = sim.env(node);
    let (wall, now) = (env.wall(), env.now());
    sim.jump_wall(node, Duration::from_secs(86400), false);
    assert_eq!(env.wall().secs, wall.secs - 86400);
    assert_eq!(env.now(), now);
}

#[test]
fn blocking_work_runs_in_an_order_of_the_seed() {
    let order = |seed| {
        let sim = Sim::new(seed);
        let node = sim.node("a", ip(1));
        let env = sim.env(node);
        let done = Arc::new(Mutex::new(Vec::new()));
        for number in 0..20 {
            let done = done.clone();
            env.blocking(Box::new(move || done.lock().unwrap().push(number)));
        }
        sim.run_for(Duration::from_secs(1));
        std::mem::take(&mut *done.lock().unwrap())
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
    assert_eq!(order(1).len(), 20);
}

#[test]
fn tasks_wait_for_each_other_in_an_order_of_the_seed() {
    let run = |seed| {
        let sim = Sim::new(seed);
        let node = sim.node("a", ip(1));
        let (order, free) = (Arc::new(sync::Mutex::new(Vec::new())), Arc::new(Semaphore::new(3)));
        let start = Arc::new(Notify::new());
        for number in 0..50 {
            let (order, free, env) = (order.clone(), free.clone(), sim.env(node));
            let started = start.clone().notified_owned();
            let done = sim.env(node).spawn_with_result(async move {
                started.await;
                let _permit = free.acquire().await;
                env.sleep(Duration::from_micros(number % 7)).await;
                let mut order = order.lock().await;
                env.sleep(Duration::from_micros(1)).await;
                order.push(number);
            });
            sim.env(node).spawn(Box::pin(async move { _ = done.await }));
        }
        sim.run_for(Duration::from_secs(1));
        start.notify_waiters();
        sim.run_for(Duration::from_secs(1));
        let order = order.try_lock().unwrap().clone();
        (order, sim.fingerprint())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
    assert_eq!(run(1).0.len(), 50);
}

#[test]
fn ready_tasks_run_in_order_if_the_world_says_so() {
    let order_of = |in_order| {
        let sim = Sim::with_config(WorldConfig { in_order, ..WorldConfig::new(1) });
        let node = sim.node("a", ip(1));
        let order = Arc::new(Mutex::new(Vec::new()));
        for number in 0..50 {
            let order = order.clone();
            sim.env(node).spawn(Box::pin(async move { order.lock().unwrap().push(number) }));
        }
        sim.run_for(Duration::from_secs(1));
        Arc::into_inner(order).unwrap().into_inner().unwrap()
    };
    assert!(order_of(true).is_sorted());
    assert!(!order_of(false).is_sorted());
}

#[test]
fn a_node_loses_its_own_datagrams_once_its_link_to_itself_has_settings() {
    let sim = Sim::new(6);
    let node = sim.node("a", ip(1));
    let handler = Arc::new(Echo::default());
    let other = SocketAddr::new(ip(1), 7001);
    let ports = [sim.bind(node, address(1), handler.clone()), sim.bind(node, other, handler.clone())];
    let arrived = || {
        (0..100).for_each(|_| ports[0].send(other, Bytes::from_static(b"x")));
        sim.run_for(Duration::from_secs(1));
        std::mem::take(&mut *handler.got.lock().unwrap()).len()
    };
    let link = LinkConfig { loss_per_million: 500_000, ..LinkConfig::default() };
    sim.set_link(link);
    sim.cut(node, node);
    assert_eq!(arrived(), 100);
    sim.set_link_between(node, node, link);
    assert_eq!(arrived(), 0);
    sim.mend(node, node);
    assert!((20..80).contains(&arrived()));
}
