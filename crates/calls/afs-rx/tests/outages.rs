//! Network outages in the middle of a call: which calls survive them.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use crate::support;

use afs_rx::packet::{PacketType, flags};
use afs_rx::{
    CallError, CallId, Config, ConnId, Event, Instant, NullClient, NullServer, Read, ServiceOptions,
};
use core::time::Duration;
use support::script::{SERVICE, Script, ack_payload, from_client};
use support::{CLIENT, SERVER, Weather, World, address, pattern};

const REACH: ServiceOptions = ServiceOptions { reachability_check: true };
/// How long the kernel client of Linux waits for a reply.
const PATIENCE: Duration = Duration::from_secs(20);
const STORED: usize = 1 << 20;

/// A store whose client has a longer time-out than a server has by itself.
struct Store {
    world: World,
    connection: ConnId,
    call: CallId,
    len: usize,
    written: usize,
    incoming: Option<CallId>,
    received: Vec<u8>,
    ended: Option<Result<(), CallError>>,
}

impl Store {
    fn begin() -> Self {
        let len = STORED;
        let slow = Weather { delay_min_us: 20_000, delay_max_us: 20_000, ..Weather::FAIR };
        let mut world = World::new(7, slow, &Config::default());
        world.ends[SERVER].listen_with(SERVICE, vec![Box::new(NullServer)], REACH).unwrap();
        let connection =
            world.ends[CLIENT].connect(world.now, address(SERVER), SERVICE, Box::new(NullClient));
        world.ends[CLIENT].set_dead_time(connection, PATIENCE + Duration::from_secs(5));
        let call = world.ends[CLIENT].open_call(world.now, connection).unwrap();
        Store { world, connection, call, len, written: 0, incoming: None, received: Vec::new(), ended: None }
    }

    /// The same once more, on the same connection.
    fn again(mut self) -> Self {
        let call = self.world.ends[CLIENT].open_call(self.world.now, self.connection).unwrap();
        Store { call, written: 0, incoming: None, received: Vec::new(), ended: None, ..self }
    }

    /// Runs to `until`, or to the end.
    fn run_to(&mut self, until: Instant) {
        while self.ended.is_none() {
            self.write();
            self.receive();
            self.world.transmit();
            while let Some(event) = self.world.ends[CLIENT].poll_event() {
                if let Event::Finished(_, result) = event {
                    self.ended = Some(result);
                }
            }
            let next = self.world.next().expect("a call has timers");
            if next > until {
                return self.world.advance(until);
            }
            self.world.advance(next);
        }
    }

    fn write(&mut self) {
        let (now, client) = (self.world.now, &mut self.world.ends[CLIENT]);
        let mut rest = pattern(3, self.written, self.len - self.written);
        if !rest.is_empty() {
            self.written += client.write(now, self.call, &mut rest).unwrap_or(0);
            if self.written == self.len {
                client.finish_send(now, self.call).unwrap();
            }
        }
        while let Ok(Read::Data(_)) = client.read(now, self.call, 100) {}
    }

    fn receive(&mut self) {
        let (now, server) = (self.world.now, &mut self.world.ends[SERVER]);
        while let Some(event) = server.poll_event() {
            if let Event::IncomingCall { call, .. } = event {
                self.incoming = Some(call);
            }
        }
        let Some(call) = self.incoming else { return };
        loop {
            match server.read(now, call, 1 << 20) {
                Ok(Read::Data(data)) => self.received.extend_from_slice(&data),
                Ok(Read::Eof) => {
                    server.finish_send(now, call).unwrap();
                    return self.incoming = None;
                }
                _ => return,
            }
        }
    }
}

#[test]
fn a_store_outlasts_a_cut_as_long_as_its_client_is_patient() {
    let mut store = Store::begin();
    store.run_to(store.world.now + Duration::from_millis(200));
    let before = store.received.len();
    assert!(before > 0 && before < STORED, "in the middle: {before}");
    store.world.weather.loss = 1000;
    store.run_to(store.world.now + PATIENCE);
    store.world.weather.loss = 0;
    store.run_to(store.world.now + Duration::from_secs(60));
    assert_eq!(store.ended, Some(Ok(())));
    assert!(store.received == pattern(3, 0, STORED), "what arrived is what was sent");
}

#[test]
fn a_path_that_becomes_narrow_costs_one_call_two_seconds() {
    let mut store = Store::begin();
    store.run_to(store.world.now + Duration::from_secs(5));
    assert_eq!(store.ended, Some(Ok(())));
    let mut store = store.again();
    store.run_to(store.world.now + Duration::from_millis(60));
    assert!(!store.received.is_empty() && store.received.len() < STORED);
    store.world.size_max = 1300;
    let narrow_at = store.world.now;
    store.run_to(narrow_at + Duration::from_secs(10));
    assert_eq!(store.ended, Some(Err(CallError::Unreachable)));
    assert!(store.world.now - narrow_at < Duration::from_secs(2), "{:?}", store.world.now - narrow_at);
    let mut store = store.again();
    let again_at = store.world.now;
    store.run_to(again_at + Duration::from_secs(10));
    assert_eq!(store.ended, Some(Ok(())));
    assert!(store.received == pattern(3, 0, STORED), "what arrived is what was sent");
    assert!(store.world.now - again_at < Duration::from_millis(600), "{:?}", store.world.now - again_at);
}

#[test]
fn a_request_of_one_packet_that_is_swallowed_leaves_its_path_unknown() {
    let mut store = Store::begin();
    store.run_to(store.world.now + Duration::from_secs(5));
    let mut store = store.again();
    store.run_to(store.world.now + Duration::from_secs(5));
    assert_eq!(store.ended, Some(Ok(())));
    store.world.size_max = 1300;
    let mut store = Store { len: 1400, ..store }.again();
    store.run_to(store.world.now + Duration::from_secs(60));
    assert_eq!((store.ended, store.received.len()), (Some(Err(CallError::Unreachable)), 0));
    let mut store = store.again();
    store.run_to(store.world.now + Duration::from_secs(2));
    assert_eq!((store.ended, store.received.len()), (Some(Ok(())), 1400));
}

#[test]
fn a_proven_client_that_stays_silent_is_given_up_after_the_longer_time() {
    let mut script = Script::new(Config::default());
    script.end.listen_with(SERVICE, vec![Box::new(NullServer)], REACH).unwrap();
    script.give(from_client(PacketType::DATA, 1, 1, 1, 0), b"beginning");
    let ping = script.sent().pop().unwrap();
    let answer = ack_payload(1, 0, ping.header.serial, afs_rx::packet::reason::PING_RESPONSE, &[]);
    script.give(from_client(PacketType::ACK, 1, 0, 2, 0), &answer);
    let call = script.incoming();
    assert_eq!(script.read_all(call).1, Read::WouldBlock);
    let sent = script.wait(Duration::from_secs(29));
    let pings = sent.iter().filter(|(_, sent)| sent.header.flags & flags::REQUEST_ACK != 0).count();
    assert!((13..=15).contains(&pings), "one in two seconds: {pings}");
    assert_eq!(script.events(), []);
    script.wait(Duration::from_secs(3));
    assert_eq!(script.events(), [Event::Finished(call, Err(CallError::Unreachable))]);
}

#[test]
fn a_call_whose_client_has_proven_nothing_lives_no_longer() {
    let mut script = Script::new(Config::default());
    script.end.listen_with(SERVICE, vec![Box::new(NullServer)], REACH).unwrap();
    script.give(from_client(PacketType::DATA, 1, 1, 1, 0), &[1; 900]);
    assert_eq!(script.end.holdings().calls, 1);
    script.wait(Config::default().dead_time + Duration::from_secs(2));
    assert_eq!((script.end.holdings().calls, script.end.holdings().buffered_bytes), (0, 0));
}
