//! Calls between two endpoints in a small simulation.

// Tests and their helpers may panic.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::fake;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use afs_rpc::future::join_all;
use afs_rpc::{CallError, CallOptions, Connection, EnvExt, Limits, Rx, Security};
use afs_rx::Config;
use afs_rx::packet::{Header, PacketType, flags};
use afs_sim::OneHost;
use afs_wire::error::AbortCode;
use afs_wire::fs;
use afs_wire::rpc::{Request, ServiceId};
use afs_wire::xdr::{Decode, DecodeError, Encode, Reader};
use fake::*;
use std::net::SocketAddr;

struct Cell {
    world: Arc<OneHost>,
    fake: Arc<Fake>,
    server: Rx,
    server_at: SocketAddr,
    client: Rx,
    client_at: SocketAddr,
}

fn cell(seed: u64) -> Cell {
    cell_with(seed, Config::default(), Limits::default())
}

fn cell_with(seed: u64, config: Config, limits: Limits) -> Cell {
    let world = OneHost::new(seed);
    let (server, server_at) = world.node_with(7000, config.clone(), limits);
    let (client, client_at) = world.node_with(7001, config, Limits::default());
    let fake = Fake::new(world.env());
    server.listen(fake.service()).unwrap();
    Cell { world, fake, server, server_at, client, client_at }
}

impl Cell {
    fn connection(&self) -> Connection {
        self.client.connection(self.server_at, ServiceId::FILE, Security::null())
    }
}

#[test]
fn a_call_is_answered() {
    let cell = cell(1);
    let connection = cell.connection();
    let status = cell.world.run(async move { ask_status(&connection, 42).await }).unwrap();
    assert_eq!((status.length, status.link_count), (42, 1));
}

#[test]
fn an_error_of_the_handler_arrives_as_its_code() {
    let cell = cell(2);
    let connection = cell.connection();
    let status = cell.world.run(async move { ask_status(&connection, ABSENT).await });
    assert_eq!(status, Err(CallError::Abort(AbortCode::VNOVNODE)));
}

#[test]
fn unknown_opcodes_refused_ones_and_bad_arguments_have_their_codes() {
    #[derive(Debug)]
    struct Odd<const OPCODE: u32>(Vec<u8>);
    impl<const OPCODE: u32> Encode for Odd<OPCODE> {
        fn encode(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&self.0);
        }
    }
    impl<const OPCODE: u32> Decode for Odd<OPCODE> {
        fn decode(_: &mut Reader<'_>) -> Result<Self, DecodeError> {
            Ok(Self(Vec::new()))
        }
    }
    impl<const OPCODE: u32> Request for Odd<OPCODE> {
        const SERVICE: ServiceId = ServiceId::FILE;
        const OPCODE: u32 = OPCODE;
        const NAME: &'static str = "odd";
        type Reply = ();
    }
    let cell = cell(3);
    let connection = cell.connection();
    let outcomes = cell.world.run(async move {
        [
            connection.call(&Odd::<4711>(vec![])).await,
            connection.call(&Odd::<199>(vec![1; 40])).await,
            connection.call(&Odd::<132>(vec![0; 3])).await,
            connection.call(&Odd::<65538>(vec![0; 3])).await,
            connection.call(&Odd::<132>(vec![0; 1 << 20])).await,
        ]
    });
    let abort = |code| Err(CallError::Abort(code));
    let unreadable = abort(AbortCode::RXGEN_SS_UNMARSHAL);
    let unknown = abort(AbortCode::RXGEN_OPCODE);
    assert_eq!(
        outcomes,
        [unknown, abort(AbortCode::VBUSY), unreadable.clone(), unreadable.clone(), unreadable]
    );
}

#[test]
fn a_service_that_is_not_there_refuses() {
    let cell = cell(4);
    let connection = cell.client.connection(cell.server_at, ServiceId(99), Security::null());
    let status = cell.world.run(async move { ask_status(&connection, 1).await });
    assert_eq!(status, Err(CallError::Abort(AbortCode::RX_INVALID_OPERATION)));
}

#[test]
fn a_handler_that_panics_aborts_only_its_call() {
    let cell = cell(5);
    let connection = cell.connection();
    let (broken, next) = cell
        .world
        .run(async move { (ask_status(&connection, BROKEN).await, ask_status(&connection, 1).await) });
    assert_eq!(broken, Err(CallError::Abort(AbortCode::RX_USER_ABORT)));
    assert!(next.is_ok());
}

#[test]
fn requests_of_several_packets_arrive() {
    let cell = cell(6);
    let connection = cell.connection();
    let reply = cell.world.run(async move { connection.call(&large_request(1024)).await }).unwrap();
    assert_eq!(reply.status.length, 1024);
}

#[test]
fn data_streams_both_ways_whatever_is_lost() {
    for (seed, loss) in [(7, 0), (8, 50), (9, 7)] {
        let cell = cell(seed);
        cell.world.lose_one_in(loss);
        let length = if loss == 7 { 300_000 } else { 5_000_000 };
        let connection = cell.connection();
        let fetched = cell.world.run(async move { fetch_pattern(&connection, 1, length).await });
        assert_eq!(fetched, Ok(length), "loss 1/{loss}");
        let connection = cell.connection();
        let stored = cell.world.run(async move { store_pattern(&connection, 1, length).await });
        assert_eq!(stored, Ok(length), "loss 1/{loss}");
    }
}

#[test]
fn aborts_in_mid_stream_reach_the_other_side() {
    let cell = cell(10);
    let connection = cell.connection();
    let (fetched, stored) = cell.world.run(async move {
        let fetched = fetch_pattern(&connection, FRAGILE, 50_000_000).await;
        (fetched, store_pattern(&connection, FRAGILE, 50_000_000).await)
    });
    assert_eq!(fetched, Err(CallError::Abort(AbortCode::VIO)));
    assert_eq!(stored, Err(CallError::Abort(AbortCode::VDISKFULL)));
}

#[test]
fn a_client_that_gives_up_ends_the_handler() {
    let cell = cell(11);
    let connection = cell.connection();
    let fake = cell.fake.clone();
    let world = cell.world.clone();
    cell.world.run(async move {
        let ask = fs::StoreData64 {
            fid: fid(1, 1),
            status: Default::default(),
            position: 0,
            length: 10_000_000,
            file_length: 10_000_000,
        };
        let mut call = connection.open(&ask).await.unwrap();
        let stored = fake.changed.notified();
        call.write(pattern(0, 100_000)).await.unwrap();
        stored.await;
        call.abort(AbortCode::RX_USER_ABORT);
    });
    world.run_for(Duration::from_secs(1));
    assert_eq!(cell.server.holdings().calls, 0, "nothing is left of the call on the server");
}

#[test]
fn more_calls_than_channels_wait_for_their_turn() {
    let cell = cell(12);
    let connection = cell.connection();
    let env = cell.world.env();
    let calls: Vec<_> = (0..200)
        .map(|i| {
            let connection = connection.clone();
            env.spawn_with_result(async move { ask_status(&connection, 1 + i).await.unwrap().length })
        })
        .collect();
    let lengths: Vec<u64> = cell.world.run(join_all(calls)).into_iter().map(Result::unwrap).collect();
    assert_eq!(lengths, (1..=200).collect::<Vec<_>>());
    let connections = cell.client.holdings().client_connections;
    assert!(connections <= Limits::default().connections, "{connections}");
}

#[test]
fn connections_to_peers_that_nobody_calls_any_more_are_bounded() {
    let limits = Limits { idle_pools: 4, ..Limits::default() };
    let cell = cell_with(61, Config::default(), limits);
    for port in 0..20 {
        let (peer, at) = cell.world.node(8000 + port);
        peer.listen(cell.fake.clone().service()).unwrap();
        let connection = cell.server.connection(at, ServiceId::FILE, Security::null());
        cell.world.run(async move { ask_status(&connection, 1).await }).unwrap();
    }
    let held = cell.server.holdings().client_connections;
    assert!(held <= 5, "{held}");
}

#[test]
fn slow_calls_run_side_by_side_within_the_limits() {
    let limits = Limits { calls_per_host: 3, ..Limits::default() };
    let cell = cell_with(13, Config::default(), limits);
    let connection = cell.connection();
    let env = cell.world.env();
    let calls: Vec<_> = (0..9)
        .map(|_| {
            let connection = connection.clone();
            env.spawn_with_result(async move { ask_status(&connection, SLOW).await.is_ok() })
        })
        .collect();
    let before = cell.world.now();
    let outcomes = cell.world.run(join_all(calls));
    assert!(outcomes.into_iter().all(|outcome| outcome == Ok(true)));
    assert_eq!(cell.fake.most.load(Ordering::SeqCst), 3);
    let took = cell.world.now() - before;
    assert!(took >= Duration::from_secs(30) && took < Duration::from_secs(32), "{took:?}");
}

#[test]
fn a_call_beyond_the_queue_is_told_to_retry() {
    let limits = Limits { calls_per_host: 1, waiting_per_host: 2, ..Limits::default() };
    let cell = cell_with(14, Config::default(), limits);
    let connection = cell.connection();
    let env = cell.world.env();
    let calls: Vec<_> = (0..5)
        .map(|_| {
            let connection = connection.clone();
            env.spawn_with_result(async move { ask_status(&connection, SLOW).await.map(|_| ()) })
        })
        .collect();
    let outcomes = cell.world.run(join_all(calls));
    let served = outcomes.iter().filter(|outcome| matches!(outcome, Ok(Ok(())))).count();
    let busy = CallError::Abort(AbortCode::VBUSY);
    let refused = outcomes.iter().filter(|outcome| matches!(outcome, Ok(Err(e)) if *e == busy)).count();
    assert_eq!((served, refused), (3, 2));
}

#[test]
fn a_peer_that_falls_silent_is_unreachable_in_bounded_time() {
    let cell = cell(15);
    let connection = cell.connection();
    cell.world.cut(true);
    let before = cell.world.now();
    let outcome = cell.world.run({
        let connection = connection.clone();
        async move { ask_status(&connection, 1).await }
    });
    assert_eq!(outcome, Err(CallError::Unreachable { peer: cell.server_at }));
    let took = cell.world.now() - before;
    assert!(took >= Duration::from_secs(12) && took < Duration::from_secs(25), "{took:?}");
    cell.world.cut(false);
    assert!(
        cell.world.run(async move { ask_status(&connection, 1).await }).is_ok(),
        "it answers when it is back"
    );
}

#[test]
fn patience_can_be_chosen() {
    let cell = cell(16);
    let second = Duration::from_secs(1);
    let quick = cell.connection().with_options(CallOptions { dead: None, hard: Some(3 * second) });
    let before = cell.world.now();
    let outcome = cell.world.run(async move { ask_status(&quick, SLOW).await });
    assert_eq!(outcome, Err(CallError::Timeout));
    assert!(cell.world.now() - before < 4 * second);
    cell.world.cut(true);
    let hasty = cell.connection().with_options(CallOptions { dead: Some(6 * second), hard: None });
    let before = cell.world.now();
    let outcome = cell.world.run(async move { ask_status(&hasty, 1).await });
    assert_eq!(outcome, Err(CallError::Unreachable { peer: cell.server_at }));
    let took = cell.world.now() - before;
    assert!(took >= 6 * second && took < 12 * second, "{took:?}");
}

#[test]
fn a_client_that_vanishes_leaves_nothing_behind() {
    let cell = cell(17);
    let connection = cell.connection();
    let env = cell.world.env();
    let fetching: Vec<_> = (0..3)
        .map(|_| {
            let connection = connection.clone();
            env.spawn_with_result(async move { fetch_pattern(&connection, 1, 1 << 30).await.is_ok() })
        })
        .collect();
    cell.world.run_for(Duration::from_millis(20));
    assert!(cell.server.holdings().calls > 0);
    cell.world.cut(true);
    cell.world.run_for(Duration::from_secs(60));
    assert_eq!(cell.server.holdings().calls, 0);
    drop(fetching);
}

#[test]
fn a_client_that_never_reads_is_cut_off() {
    let cell = cell(18);
    let connection = cell.connection();
    let ask = fs::FetchData64 { fid: fid(1, 1), position: 0, length: 1 << 30 };
    let mut call = cell.world.run(async move { connection.open(&ask).await }).unwrap();
    call.finish_request().unwrap();
    cell.world.run_for(Duration::from_secs(30));
    let held = cell.client.holdings().buffered_bytes;
    assert!(held <= 8 << 20, "{held} bytes are held for a reader that does not come");
    cell.world.run_for(Duration::from_secs(60));
    assert_eq!(cell.server.holdings().calls, 0);
    let outcome = cell.world.run(async move {
        loop {
            match call.read_some(PIECE).await {
                Ok(Some(_)) => {}
                outcome => return outcome,
            }
        }
    });
    assert_eq!(outcome, Err(CallError::Abort(AbortCode::RX_CALL_TIMEOUT)));
}

#[test]
fn a_client_that_never_finishes_its_request_is_cut_off() {
    let cell = cell(23);
    let connection = cell.connection();
    let (fid, status, length) = (fid(1, 1), fs::SetStatus::default(), 10_000_000);
    let ask = fs::StoreData64 { fid, status, position: 0, length, file_length: length };
    let mut call = cell.world.run(async move { connection.open(&ask).await }).unwrap();
    let mut call = cell.world.run(async move {
        call.write(pattern(0, 100_000)).await.unwrap();
        call
    });
    cell.world.run_for(Duration::from_secs(50));
    assert_eq!(cell.server.holdings().calls, 1, "it has a minute");
    cell.world.run_for(Duration::from_secs(30));
    assert_eq!(cell.server.holdings().calls, 0);
    let outcome = cell.world.run(async move { call.write(pattern(100_000, 10)).await });
    assert_eq!(outcome, Err(CallError::Abort(AbortCode::RX_CALL_TIMEOUT)));
}

#[test]
fn closing_ends_every_wait() {
    let cell = cell(19);
    let connection = cell.connection();
    let env = cell.world.env();
    let calls: Vec<_> = (0..40)
        .map(|_| {
            let connection = connection.clone();
            env.spawn_with_result(async move { ask_status(&connection, SLOW).await })
        })
        .collect();
    cell.world.run_for(Duration::from_millis(100));
    cell.client.close();
    let outcomes = cell.world.run(join_all(calls));
    assert!(outcomes.into_iter().all(|outcome| outcome == Ok(Err(CallError::Closed))));
    let late = cell.world.run(async move { ask_status(&connection, 1).await });
    assert_eq!(late, Err(CallError::Closed));
}

#[test]
fn a_trusted_address_is_local_and_only_loopback_can_be() {
    let cell = cell(20);
    cell.server.trust(cell.client_at).unwrap();
    assert!(cell.server.trust("192.0.2.1:7001".parse().unwrap()).is_err());
    let connection = cell.connection();
    let status = cell.world.run({
        let connection = connection.clone();
        async move { ask_status(&connection, 1).await }
    });
    assert_eq!(status.unwrap().link_count, 2);
    cell.server.distrust(cell.client_at);
    let status = cell.world.run(async move { ask_status(&connection, 1).await });
    assert_eq!(status.unwrap().link_count, 1);
}

#[test]
fn unused_connections_are_closed_and_opened_again() {
    let cell = cell(21);
    let connection = cell.connection();
    let ask = |vnode| {
        let connection = connection.clone();
        cell.world.run(async move { ask_status(&connection, vnode).await })
    };
    assert!(ask(1).is_ok());
    assert_eq!(cell.client.holdings().client_connections, 1);
    cell.world.run_for(Duration::from_secs(1300));
    assert_eq!(cell.client.holdings().client_connections, 0);
    assert!(ask(2).is_ok());
}

#[test]
fn one_seed_is_one_history() {
    let history = |seed| {
        let cell = cell(seed);
        cell.world.lose_one_in(10);
        let connection = cell.connection();
        let outcome = cell.world.run(async move { fetch_pattern(&connection, 1, 400_000).await });
        (outcome, cell.world.now())
    };
    assert_eq!(history(22), history(22));
}

#[test]
fn requests_under_false_addresses_shut_nobody_out() {
    let mut config = Config::default();
    config.incoming_calls_max = 64;
    let limits = Limits { calls: 16, waiting: 16, ..Limits::default() };
    let cell = cell_with(30, config, limits);
    let now = cell.world.env().now();
    for number in 0..2000u32 {
        let header = Header {
            epoch: 0x8000_0001,
            cid: 4 * number,
            call: 1,
            seq: 1,
            serial: 1,
            kind: PacketType::DATA,
            flags: flags::CLIENT_INITIATED,
            user_status: 0,
            security_index: 0,
            checksum: 0,
            service: ServiceId::FILE.0,
        };
        let from = SocketAddr::from((std::net::Ipv4Addr::from(0xc633_6400 + number), 7001));
        cell.server.handle_datagrams(now, [(from, [&header.to_bytes()[..], b"x"].concat().into())]);
    }
    let connection = cell.connection();
    assert!(cell.world.run(async move { ask_status(&connection, 1).await }).is_ok());
}

#[test]
fn requests_that_are_never_completed_shut_nobody_out() {
    let limits = Limits {
        calls: 16,
        waiting: 16,
        calls_per_host: 8,
        waiting_per_host: 8,
        incomplete: 12,
        ..Limits::default()
    };
    let cell = cell_with(31, Config::default(), limits);
    let env = cell.world.env();
    let ports = (7100..7120).map(|port| cell.world.node_with(port, Config::default(), Limits::default()).0);
    let strangers: Vec<Rx> = ports.collect();
    let mut begun = Vec::new();
    for stranger in &strangers {
        let connection = stranger.connection(cell.server_at, ServiceId::FILE, Security::null());
        for _ in 0..32 {
            let connection = connection.clone();
            begun.push(env.spawn_with_result(async move {
                let mut call = connection.open(&store(1, 1 << 20)).await?;
                call.write(pattern(0, 10_000)).await?;
                call.read_to_end(100).await
            }));
        }
    }
    cell.world.run_for(Duration::from_secs(2));
    assert!(cell.server.holdings().calls >= 8);
    let connection = cell.connection();
    assert!(cell.world.run(async move { ask_status(&connection, 1).await }).is_ok());
    drop(begun);
}
