//! Benchmark of the state machine: two endpoints in memory.
//!
//! `cargo run --release -p afs-rx --example throughput [bulk|calls|all] [packet size] [MB, or thousand calls]`
//!
//! Prints MB/s of one large reply, and small calls a second, the work of both ends included.

#![allow(clippy::expect_used)]
#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use afs_rx::{CallId, Config, ConnId, Endpoint, Event, Instant, NullClient, NullServer, Read};
use bytes::Bytes;
use std::net::SocketAddr;
use std::time::Instant as Clock;

const SERVICE: u16 = 1;
/// Megabytes, or thousands of calls.
const AMOUNT: usize = 1000;

fn main() {
    let what = std::env::args().nth(1).unwrap_or_else(|| "all".to_owned());
    let size = std::env::args().nth(2).and_then(|size| size.parse().ok());
    let amount = std::env::args().nth(3).and_then(|amount| amount.parse().ok()).unwrap_or(AMOUNT);
    let sizes = size.map_or(vec![1444, 16384], |size| vec![size]);
    for size in sizes {
        if what != "calls" {
            let start = Clock::now();
            bulk(size, amount * 1_000_000);
            let seconds = start.elapsed().as_secs_f64();
            println!("bulk, packets of {size}: {:.0} MB/s", amount as f64 / seconds);
        }
    }
    if what != "bulk" {
        for connections in [1, 16] {
            let start = Clock::now();
            small_calls(connections, amount * 1000);
            let seconds = start.elapsed().as_secs_f64();
            println!("small calls, {connections} connections: {:.0} calls/s", amount as f64 * 1e3 / seconds);
        }
    }
}

/// Both ends and the clock between them.
struct World {
    now: Instant,
    client: Endpoint,
    server: Endpoint,
    buf: Vec<u8>,
}

impl World {
    fn new(packet_size: usize) -> Self {
        let mut config = Config::default();
        config.packet_size_loopback = packet_size;
        let client = Endpoint::new(config.clone(), [1; 32]);
        let mut server = Endpoint::new(config, [2; 32]);
        let offered = server.listen(SERVICE, vec![Box::new(NullServer)]);
        assert_eq!(offered, Ok(()));
        World { now: Instant(1), client, server, buf: Vec::new() }
    }

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    /// Delivers everything that is ready, 10 µs one way.
    fn carry(&mut self) {
        self.now += std::time::Duration::from_micros(10);
        carry(self.now, &mut self.client, &mut self.server, Self::address(7001), &mut self.buf);
        carry(self.now, &mut self.server, &mut self.client, Self::address(7000), &mut self.buf);
    }
}

fn carry(now: Instant, from: &mut Endpoint, to: &mut Endpoint, source: SocketAddr, buf: &mut Vec<u8>) {
    while let Some(transmit) = from.poll_transmit(now, buf) {
        // One allocation for a batch, as a receive buffer would be.
        let mut batch = Bytes::copy_from_slice(&buf[..transmit.len]);
        let segment = transmit.segment_size.unwrap_or(transmit.len);
        while !batch.is_empty() {
            to.handle_datagram(now, source, batch.split_to(segment.min(batch.len())));
        }
    }
}

fn bulk(packet_size: usize, len: usize) {
    let mut world = World::new(packet_size);
    let connection = world.client.connect(world.now, World::address(7000), SERVICE, Box::new(NullClient));
    let call = world.client.open_call(world.now, connection).expect("a new connection has channels");
    world.client.finish_send(world.now, call).expect("a new call can be ended");
    let chunk = Bytes::from(vec![7; 1 << 20]);
    let (mut writer, mut left, mut received) = (None, len, 0);
    while received < len {
        world.carry();
        while let Some(event) = world.server.poll_event() {
            match event {
                Event::IncomingCall { call, .. } | Event::Writable(call) => writer = Some(call),
                _ => {}
            }
        }
        if let Some(call) = writer {
            left -= fill(&mut world, call, &chunk, left);
            if left == 0 {
                world.server.finish_send(world.now, call).expect("the reply can be ended");
                writer = None;
            }
        }
        while world.client.poll_event().is_some() {}
        while let Ok(Read::Data(data)) = world.client.read(world.now, call, 1 << 20) {
            received += data.len();
        }
    }
}

/// Writes until the call accepts no more.
fn fill(world: &mut World, call: CallId, chunk: &Bytes, left: usize) -> usize {
    let mut written = 0;
    loop {
        let mut data = chunk.slice(..chunk.len().min(left - written));
        let offered = data.len();
        let taken = world.server.write(world.now, call, &mut data).expect("the call lives");
        written += taken;
        if taken < offered || written == left {
            return written;
        }
    }
}

fn small_calls(connections: usize, calls: usize) {
    let mut world = World::new(1444);
    let request = Bytes::from(vec![1; 20]);
    let ids: Vec<ConnId> = (0..connections)
        .map(|_| world.client.connect(world.now, World::address(7000), SERVICE, Box::new(NullClient)))
        .collect();
    for id in &ids {
        for _ in 0..4 {
            begin(&mut world, *id, &request);
        }
    }
    let reply = Bytes::from(vec![2; 120]);
    let mut done = 0;
    while done < calls {
        world.carry();
        while let Some(event) = world.server.poll_event() {
            if let Event::IncomingCall { call, .. } = event {
                while let Ok(Read::Data(_)) = world.server.read(world.now, call, 1 << 16) {}
                world.server.write(world.now, call, &mut reply.clone()).expect("the call lives");
                world.server.finish_send(world.now, call).expect("the call lives");
                world.server.release(world.now, call);
            }
        }
        while let Some(event) = world.client.poll_event() {
            if let Event::Readable(call) = event {
                let connection = world.client.call(call).expect("the call lives").connection;
                while let Ok(Read::Data(_)) = world.client.read(world.now, call, 1 << 16) {}
                world.client.release(world.now, call);
                done += 1;
                begin(&mut world, connection, &request);
            }
        }
    }
}

fn begin(world: &mut World, connection: ConnId, request: &Bytes) {
    let call = world.client.open_call(world.now, connection).expect("a channel is free");
    world.client.write(world.now, call, &mut request.clone()).expect("the call lives");
    world.client.finish_send(world.now, call).expect("the call lives");
}
