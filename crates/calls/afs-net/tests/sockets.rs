//! Calls over real sockets on loopback.

// Tests and their helpers may panic.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::fake;

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use afs_net::{System, Udp, UdpOptions};
use afs_rpc::{CallError, CallOptions, Connection, Env, EnvExt, Security};
use afs_rx::Config;
use afs_wire::error::AbortCode;
use afs_wire::rpc::ServiceId;
use fake::*;

struct Cell {
    system: Arc<System>,
    server: Udp,
    client: Udp,
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn cell() -> Cell {
    cell_with(UdpOptions { address: loopback(), ..UdpOptions::default() })
}

fn cell_with(options: UdpOptions) -> Cell {
    let system = System::new().unwrap();
    let server = Udp::bind_with(&system, options.clone()).unwrap();
    let client = Udp::bind_with(&system, options).unwrap();
    server.rx().listen(Fake::new(system.env()).service()).unwrap();
    Cell { system, server, client }
}

impl Cell {
    fn connection(&self) -> Connection {
        self.client.rx().connection(self.server.local_addr(), ServiceId::FILE, Security::null())
    }
}

#[test]
fn calls_are_answered_with_results_or_codes() {
    let cell = cell();
    let connection = cell.connection();
    let (good, bad) = cell
        .system
        .block_on(async { (ask_status(&connection, 42).await, ask_status(&connection, ABSENT).await) });
    assert_eq!(good.unwrap().length, 42);
    assert_eq!(bad, Err(CallError::Abort(AbortCode::VNOVNODE)));
}

#[test]
fn data_streams_both_ways() {
    for offload in [true, false] {
        for packet in [16384, 1444] {
            let mut config = Config::default();
            config.packet_size_loopback = packet;
            let cell =
                cell_with(UdpOptions { address: loopback(), config, offload, ..UdpOptions::default() });
            let connection = cell.connection();
            let length = 5_000_001;
            let (fetched, stored) = cell.system.block_on(async {
                (fetch_pattern(&connection, 1, length).await, store_pattern(&connection, 1, length).await)
            });
            assert_eq!((fetched, stored), (Ok(length), Ok(length)), "offload {offload}, packets of {packet}");
        }
    }
}

#[test]
fn aborts_in_mid_stream_reach_the_other_side() {
    let cell = cell();
    let connection = cell.connection();
    let (fetched, stored) = cell.system.block_on(async {
        let fetched = fetch_pattern(&connection, FRAGILE, 50_000_000).await;
        (fetched, store_pattern(&connection, FRAGILE, 50_000_000).await)
    });
    assert_eq!(fetched, Err(CallError::Abort(AbortCode::VIO)));
    assert_eq!(stored, Err(CallError::Abort(AbortCode::VDISKFULL)));
}

#[test]
fn many_calls_of_all_kinds_run_at_once() {
    let cell = cell();
    let small: Vec<_> = (0..500)
        .map(|i| {
            let connection = cell.connection();
            cell.system.spawn_with_result(async move { ask_status(&connection, i).await.map(|s| s.length) })
        })
        .collect();
    let large: Vec<_> = (0..8)
        .map(|i| {
            let connection = cell.connection();
            cell.system.spawn_with_result(async move {
                match i % 2 {
                    0 => fetch_pattern(&connection, 1, 3_000_000).await,
                    _ => store_pattern(&connection, 1, 3_000_000).await,
                }
            })
        })
        .collect();
    for (i, answer) in small.into_iter().enumerate() {
        assert_eq!(cell.system.block_on(answer).unwrap(), Ok(i as u64));
    }
    for answer in large {
        assert_eq!(cell.system.block_on(answer).unwrap(), Ok(3_000_000));
    }
}

#[test]
fn a_handler_that_panics_on_the_receiving_thread_harms_nobody_else() {
    let cell = cell();
    let connection = cell.connection();
    let (broken, next) = cell
        .system
        .block_on(async { (ask_status(&connection, BROKEN).await, ask_status(&connection, 1).await) });
    assert_eq!(broken, Err(CallError::Abort(AbortCode::RX_USER_ABORT)));
    assert!(next.is_ok());
}

/// The kernel reports a closed port, so the peer is pinged at once, and no caller waits for the dead time.
#[test]
fn a_closed_port_is_given_up_before_the_dead_time() {
    let cell = cell();
    let address = UdpSocket::bind(loopback()).unwrap().local_addr().unwrap();
    let connection = cell.client.rx().connection(address, ServiceId::FILE, Security::null());
    let before = cell.system.now();
    let outcome = cell.system.block_on(ask_status(&connection, 1));
    assert_eq!(outcome, Err(CallError::Unreachable { peer: address }));
    let dead_time = Config::default().dead_time;
    assert!(cell.system.now() - before < dead_time, "not by silence");
}

#[test]
fn a_silent_peer_is_unreachable_after_the_dead_time() {
    let cell = cell();
    let silent = UdpSocket::bind(loopback()).unwrap();
    let peer = silent.local_addr().unwrap();
    let patience = CallOptions { dead: Some(Duration::from_secs(6)), hard: None };
    let connection =
        cell.client.rx().connection(peer, ServiceId::FILE, Security::null()).with_options(patience);
    let outcome = cell.system.block_on(ask_status(&connection, 1));
    assert_eq!(outcome, Err(CallError::Unreachable { peer }));
}

#[test]
fn a_call_can_be_limited_in_time() {
    let cell = cell();
    let patience = CallOptions { dead: None, hard: Some(Duration::from_millis(300)) };
    let connection = cell.connection().with_options(patience);
    assert_eq!(cell.system.block_on(ask_status(&connection, SLOW)), Err(CallError::Timeout));
}

#[test]
fn garbage_at_the_port_disturbs_nobody() {
    let cell = cell();
    let noise = UdpSocket::bind(loopback()).unwrap();
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    for round in 0..3000 {
        let length = usize::from(random()) * 6;
        let mut datagram: Vec<u8> = (0..length).map(|_| random()).collect();
        // Half of them look like Rx: a type that exists, client's flag, service 1, no security.
        if round % 2 == 0
            && let Some(header) = datagram.get_mut(16..28)
        {
            let looks = [0, 0, 0, 1, random() % 14, 1 | random() & 0x2e, 0, 0, 0, 0, 0, 1];
            header.copy_from_slice(&looks);
        }
        noise.send_to(&datagram, cell.server.local_addr()).unwrap();
        noise.send_to(&datagram, cell.client.local_addr()).unwrap();
        if round % 100 == 0 {
            let connection = cell.connection();
            assert!(cell.system.block_on(ask_status(&connection, 1)).is_ok(), "after {round}");
        }
    }
}

#[test]
fn the_tools_of_others_can_ask_for_the_version() {
    let mut config = Config::default();
    config.version = "Andrew of the tests".to_owned();
    let cell = cell_with(UdpOptions { address: loopback(), config, ..UdpOptions::default() });
    let asker = UdpSocket::bind(loopback()).unwrap();
    asker.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    // Epoch 999, call number 5 as the tag, type 13 (version), flags client and last; one zero byte.
    let mut ask = [0_u8; 29];
    ask[..4].copy_from_slice(&999_u32.to_be_bytes());
    ask[11] = 5;
    ask[20] = 13;
    ask[21] = 5;
    asker.send_to(&ask, cell.server.local_addr()).unwrap();
    let mut answer = [0; 2000];
    let (length, _) = asker.recv_from(&mut answer).unwrap();
    assert_eq!(length, 28 + 65);
    assert!(answer[28..].starts_with(b"Andrew of the tests\0"));
}

#[test]
fn closing_ends_waiting_calls_and_joins_the_threads() {
    let cell = cell();
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let connection = cell.connection();
            cell.system.spawn_with_result(async move { ask_status(&connection, SLOW).await })
        })
        .collect();
    let connection = cell.connection();
    cell.system.block_on(ask_status(&connection, 1)).unwrap();
    drop(connection);
    let Cell { system, server, client } = cell;
    let address = client.local_addr();
    client.shutdown();
    for call in calls {
        assert_eq!(system.block_on(call), Ok(Err(CallError::Closed)));
    }
    server.shutdown();
    drop(UdpSocket::bind(address).expect("the port is free again"));
    // Handlers still sleep in the pool and reference the environment: they are dropped with it.
    let ended = system.spawn_with_result(std::future::pending::<()>());
    system.shutdown(Duration::from_secs(5));
    assert!(is_dropped(ended), "what waited is gone");
}

/// Whether the task behind `ended` was dropped.
fn is_dropped(mut ended: afs_rpc::sync::oneshot::Receiver<()>) -> bool {
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let polled = std::future::Future::poll(std::pin::Pin::new(&mut ended), &mut cx);
    matches!(polled, std::task::Poll::Ready(Err(_)))
}
