//! Two endpoints over a faulty network: every call's bytes arrive once and in order, or the call fails with a named
//! error in bounded time; no call hangs; all state is removed in the end.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use crate::support;

use afs_rx::{CallError, CallId, Config, ConnId, Event, Holdings, Instant, NullClient, NullServer, Read};
use bytes::Bytes;
use core::time::Duration;
use std::collections::BTreeMap;
use support::{CLIENT, Dice, SERVER, Weather, World, address, pattern, pattern_at};

const SERVICE: u16 = 1;
/// Bytes at the start of a request: number of the call, length of the reply, behaviour of the server.
const HEAD: usize = 24;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Manner {
    Answers,
    /// Aborts after reading a part.
    AbortsEarly,
    /// Aborts in the middle of the reply.
    AbortsLate,
    /// Replies without having read everything.
    RepliesEarly,
    /// The client aborts.
    ClientGivesUp,
}

const MANNERS: [Manner; 5] =
    [Manner::Answers, Manner::AbortsEarly, Manner::AbortsLate, Manner::RepliesEarly, Manner::ClientGivesUp];

/// One side's state of one call.
struct Half {
    stream: u64,
    manner: Manner,
    to_write: usize,
    written: usize,
    to_read: usize,
    read: usize,
    head: Vec<u8>,
    finished: bool,
    /// The application ignores the call until then.
    sleeps_until: Instant,
    replying: bool,
}

/// The plan of a call and its outcome.
struct Run {
    world: World,
    connections: Vec<ConnId>,
    waiting: Vec<(u64, usize, usize, Manner)>,
    clients: BTreeMap<CallId, Half>,
    servers: BTreeMap<CallId, Half>,
    good: usize,
    failed: usize,
    lazy: u64,
}

impl Half {
    fn new(stream: u64, manner: Manner, to_write: usize, to_read: usize) -> Self {
        Half {
            stream,
            manner,
            to_write,
            written: 0,
            to_read,
            read: 0,
            head: Vec::new(),
            finished: false,
            sleeps_until: Instant::ZERO,
            replying: false,
        }
    }
}

fn request_bytes(stream: u64, reply: usize, manner: Manner, from: usize, len: usize) -> Bytes {
    let code = MANNERS.iter().position(|known| *known == manner).unwrap_or(0) as u64;
    let head: Vec<u8> = [stream, reply as u64, code].into_iter().flat_map(u64::to_be_bytes).collect();
    let byte = |at: usize| head.get(at).copied().unwrap_or_else(|| pattern_at(stream, at));
    (from..from + len).map(byte).collect::<Vec<u8>>().into()
}

impl Run {
    fn new(seed: u64, weather: Weather, calls: usize, size_max: u64, manners: &[Manner], lazy: u64) -> Self {
        let mut config = Config::default();
        let mut dice = Dice::new(seed ^ 0xabcdef);
        if dice.per_mille(300) {
            config.receive_buffer = 64 << 10;
        }
        if dice.per_mille(100) {
            config.receive_buffer_total = 100 << 10;
        }
        if dice.per_mille(300) {
            config.packet_size = 520 + dice.below(4000) as usize;
        }
        config.batch_packets = 1 + dice.below(64) as usize;
        let mut world = World::new(seed, weather, &config);
        let offered = world.ends[SERVER].listen(SERVICE, vec![Box::new(NullServer)]);
        assert_eq!(offered, Ok(()));
        let connections = (0..1 + dice.below(3))
            .map(|_| world.ends[CLIENT].connect(world.now, address(SERVER), SERVICE, Box::new(NullClient)))
            .collect();
        let size = |dice: &mut Dice| match dice.below(4) {
            0 => 0,
            1 => dice.below(100),
            2 => dice.below(5000),
            _ => dice.below(size_max),
        };
        let waiting = (0..calls as u64)
            .map(|stream| {
                let manner = manners[dice.below(manners.len() as u64) as usize];
                (stream, HEAD + size(&mut dice) as usize, size(&mut dice) as usize, manner)
            })
            .collect();
        let (clients, servers) = (BTreeMap::new(), BTreeMap::new());
        Run { world, connections, waiting, clients, servers, good: 0, failed: 0, lazy }
    }

    fn run(mut self, limit: Duration) -> (usize, usize, Duration) {
        let start = self.world.now;
        while !(self.waiting.is_empty() && self.clients.is_empty() && self.servers.is_empty()) {
            self.settle();
            let Some(next) = self.next() else {
                if self.clients.is_empty() && self.servers.is_empty() && self.waiting.is_empty() {
                    break;
                }
                panic!("nothing will ever happen again, with calls open");
            };
            self.world.advance(next);
            assert!(self.world.now - start < limit, "calls take for ever");
        }
        let took = self.world.now - start;
        self.check_forgotten();
        (self.good, self.failed, took)
    }

    fn next(&self) -> Option<Instant> {
        let halves = self.clients.values().chain(self.servers.values());
        let sleepers = halves.map(|half| half.sleeps_until).filter(|at| *at > self.world.now);
        sleepers.chain(self.world.next()).min()
    }

    /// Applications run until none of them has anything to do at this moment.
    fn settle(&mut self) {
        loop {
            self.world.transmit();
            let events = self.take_events();
            self.start_calls();
            let moved = self.work_all();
            if !events && !moved {
                break;
            }
        }
        self.world.transmit();
    }

    fn start_calls(&mut self) {
        for index in 0..self.connections.len() {
            while let Some(&(stream, request, reply, manner)) = self.waiting.last() {
                let now = self.world.now;
                match self.world.ends[CLIENT].open_call(now, self.connections[index]) {
                    Ok(call) => self.clients.insert(call, Half::new(stream, manner, request, reply)),
                    Err(_) => break,
                };
                self.waiting.pop();
            }
        }
    }

    fn take_events(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.world.ends[CLIENT].poll_event() {
            any = true;
            if let Event::Finished(call, result) = event {
                self.client_finished(call, result);
            }
        }
        while let Some(event) = self.world.ends[SERVER].poll_event() {
            any = true;
            match event {
                Event::IncomingCall { call, .. } => {
                    self.servers.insert(call, Half::new(0, Manner::Answers, 0, usize::MAX));
                }
                Event::Finished(call, _) => {
                    self.servers.remove(&call);
                    self.world.ends[SERVER].release(self.world.now, call);
                }
                _ => {}
            }
        }
        any
    }

    fn client_finished(&mut self, call: CallId, result: Result<(), CallError>) {
        let half = self.clients.remove(&call).expect("a call finishes once");
        match result {
            Ok(()) => {
                assert_eq!(half.read, half.to_read, "call {} ended short", half.stream);
                self.good += 1;
            }
            Err(error) => {
                let expected = match (half.manner, error) {
                    (_, CallError::Unreachable | CallError::RemoteAbort(-1 | -3)) => true,
                    (Manner::AbortsEarly | Manner::AbortsLate, CallError::RemoteAbort(code)) => code == 77,
                    (Manner::ClientGivesUp, CallError::LocalAbort(-6)) => true,
                    _ => false,
                };
                assert!(expected, "call {} ({:?}) failed with {error:?}", half.stream, half.manner);
                self.failed += 1;
            }
        }
        self.world.ends[CLIENT].release(self.world.now, call);
    }

    fn work_all(&mut self) -> bool {
        let mut moved = false;
        for call in self.clients.keys().copied().collect::<Vec<_>>() {
            moved |= self.work_client(call);
        }
        for call in self.servers.keys().copied().collect::<Vec<_>>() {
            moved |= self.work_server(call);
        }
        moved
    }

    /// Sometimes an application is busy for a while.
    fn is_lazy(&mut self) -> Option<Instant> {
        let lazy = self.world.dice.per_mille(self.lazy);
        lazy.then(|| self.world.now + Duration::from_millis(self.world.dice.below(400)))
    }

    fn work_client(&mut self, call: CallId) -> bool {
        let nap = self.is_lazy();
        let (now, end, dice) = (self.world.now, &mut self.world.ends[CLIENT], &mut self.world.dice);
        let Some(half) = self.clients.get_mut(&call) else { return false };
        if half.sleeps_until > now {
            return false;
        }
        if let Some(until) = nap {
            half.sleeps_until = until;
            return false;
        }
        if half.manner == Manner::ClientGivesUp && dice.per_mille(100) {
            end.abort(now, call, -6);
            return true;
        }
        let mut moved = false;
        if !half.finished {
            let len = (half.to_write - half.written).min(1 + dice.below(9000) as usize);
            let mut data = request_bytes(half.stream, half.to_read, half.manner, half.written, len);
            match end.write(now, call, &mut data) {
                Ok(taken) => {
                    half.written += taken;
                    moved |= taken > 0;
                }
                Err(CallError::InvalidOperation) => half.written = half.to_write,
                Err(_) => return false,
            }
            if half.written == half.to_write {
                let _ = end.finish_send(now, call);
                half.finished = true;
            }
        }
        while let Ok(Read::Data(data)) = end.read(now, call, 1 + dice.below(3000) as usize) {
            assert_eq!(data, pattern(half.stream + 1, half.read, data.len()), "reply of {}", half.stream);
            half.read += data.len();
            moved = true;
            if dice.per_mille(self.lazy) {
                half.sleeps_until = now + Duration::from_millis(dice.below(300));
                break;
            }
        }
        moved
    }

    fn work_server(&mut self, call: CallId) -> bool {
        let nap = self.is_lazy();
        let (now, end, dice) = (self.world.now, &mut self.world.ends[SERVER], &mut self.world.dice);
        let Some(half) = self.servers.get_mut(&call) else { return false };
        if half.sleeps_until > now || half.finished {
            return false;
        }
        if let Some(until) = nap {
            half.sleeps_until = until;
            return false;
        }
        let mut moved = false;
        while !half.replying {
            match end.read(now, call, 1 + dice.below(3000) as usize) {
                Ok(Read::Data(data)) => half.take_request(&data),
                Ok(Read::Eof) => half.replying = true,
                Ok(Read::WouldBlock) | Err(_) => break,
            }
            moved = true;
            let head_known = half.head.len() == HEAD;
            match half.manner {
                Manner::AbortsEarly if head_known && dice.per_mille(300) => {
                    end.abort(now, call, 77);
                    return true;
                }
                Manner::RepliesEarly if head_known && dice.per_mille(300) => half.replying = true,
                _ => {}
            }
        }
        if !half.replying {
            return moved;
        }
        let len = (half.to_write - half.written).min(1 + dice.below(9000) as usize);
        let mut data = pattern(half.stream + 1, half.written, len);
        if let Ok(taken) = end.write(now, call, &mut data) {
            half.written += taken;
            moved |= taken > 0;
        }
        if half.manner == Manner::AbortsLate && dice.per_mille(500) {
            end.abort(now, call, 77);
            return true;
        }
        if half.written == half.to_write {
            half.finished = true;
            let _ = end.finish_send(now, call);
            if dice.per_mille(500) {
                end.release(now, call);
                self.servers.remove(&call);
            }
            moved = true;
        }
        moved
    }

    /// Closes everything and lets the idle times pass.
    fn check_forgotten(&mut self) {
        for connection in std::mem::take(&mut self.connections) {
            self.world.ends[CLIENT].close(self.world.now, connection);
        }
        while let Some(next) = self.next() {
            self.world.advance(next);
            self.settle();
        }
        for end in &self.world.ends {
            assert_eq!(end.holdings(), Holdings::default());
        }
    }
}

impl Half {
    fn take_request(&mut self, data: &[u8]) {
        let missing = (HEAD - self.head.len()).min(data.len());
        self.head.extend_from_slice(&data[..missing]);
        if self.head.len() == HEAD && self.read < HEAD {
            let word = |at: usize| u64::from_be_bytes(self.head[at..at + 8].try_into().expect("eight bytes"));
            (self.stream, self.to_write, self.manner) =
                (word(0), word(8) as usize, MANNERS[word(16) as usize]);
        }
        let rest = &data[missing..];
        let at = self.read + missing;
        assert_eq!(rest, &pattern(self.stream, at, rest.len())[..], "request of {}", self.stream);
        self.read += data.len();
    }
}

/// Seeds of each test, times what the variable `RX_TROUBLE` says: for long runs by hand.
fn seeds(count: u64) -> std::ops::Range<u64> {
    let times = std::env::var("RX_TROUBLE").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    0..count * times
}

const MINUTES: Duration = Duration::from_secs(900);

#[test]
fn fair_weather() {
    for seed in seeds(150) {
        let (good, failed, took) = Run::new(seed, Weather::FAIR, 12, 60_000, &MANNERS[..1], 0).run(MINUTES);
        assert_eq!((good, failed), (12, 0), "seed {seed}");
        assert!(took < Duration::from_secs(1), "seed {seed} took {took:?} without any loss");
    }
}

#[test]
fn loss_repetition_and_reordering() {
    for seed in seeds(600) {
        let mut dice = Dice::new(seed + 5000);
        let weather = Weather {
            loss: dice.below(200),
            repeat: dice.below(100),
            delay_min_us: 20,
            delay_max_us: 20 + dice.below(30_000),
            in_order: dice.per_mille(300),
        };
        let (good, failed, _) = Run::new(seed, weather, 8, 40_000, &MANNERS[..1], 0).run(MINUTES);
        assert_eq!(good + failed, 8, "seed {seed}");
        assert_eq!(failed, 0, "seed {seed}: no peer is ever silent for long enough");
    }
}

#[test]
fn lazy_applications_and_aborts() {
    for seed in seeds(600) {
        let mut dice = Dice::new(seed + 9000);
        let weather = Weather {
            loss: dice.below(60),
            repeat: dice.below(30),
            delay_min_us: 20,
            delay_max_us: 20 + dice.below(5000),
            in_order: dice.per_mille(500),
        };
        let (good, failed, _) = Run::new(seed, weather, 10, 60_000, &MANNERS, 50).run(MINUTES);
        assert_eq!(good + failed, 10, "seed {seed}");
    }
}

#[test]
fn storms_end_calls_in_bounded_time() {
    for seed in seeds(60) {
        let weather =
            Weather { loss: 700, repeat: 100, delay_min_us: 20, delay_max_us: 100_000, in_order: false };
        let (good, failed, _) =
            Run::new(seed, weather, 6, 20_000, &MANNERS, 20).run(Duration::from_secs(20_000));
        assert_eq!(good + failed, 6, "seed {seed}");
    }
}
