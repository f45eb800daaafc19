//! Seeded simulation of two endpoints: a network that loses, repeats, delays and reorders, and a clock that jumps to
//! the next event.

#![allow(dead_code)]

pub mod pcapng;
pub mod script;
pub mod sequence;
pub mod toy;

use afs_rx::{Config, Endpoint, Instant};
use bytes::Bytes;
use core::time::Duration;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// xorshift64*: the random number generator of the tests.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 11) % bound.max(1)
    }

    pub fn per_mille(&mut self, chance: u64) -> bool {
        self.below(1000) < chance
    }

    pub fn seed(&mut self) -> [u8; 32] {
        let mut seed = [0; 32];
        seed.iter_mut().for_each(|byte| *byte = self.next() as u8);
        seed
    }
}

/// Faults of the network. Probabilities per mille.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    pub loss: u64,
    pub repeat: u64,
    pub delay_min_us: u64,
    pub delay_max_us: u64,
    /// Datagrams arrive in the order in which they were sent.
    pub in_order: bool,
}

impl Weather {
    pub const FAIR: Weather =
        Weather { loss: 0, repeat: 0, delay_min_us: 50, delay_max_us: 60, in_order: true };
}

pub const CLIENT: usize = 0;
pub const SERVER: usize = 1;

pub fn address(side: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1 + side as u8], 7000 + side as u16))
}

/// A third party on the path: it hears a datagram to one of the ends, and says what it sends itself, to whom, as if it were the other end.
pub type Third = Box<dyn FnMut(&mut Dice, usize, &Bytes) -> Vec<(usize, Bytes)>>;

pub struct World {
    pub now: Instant,
    pub dice: Dice,
    pub weather: Weather,
    /// What the path carries in each direction; its queue is unbounded.
    pub bytes_per_second: u64,
    /// Datagrams larger than this are swallowed.
    pub size_max: usize,
    pub ends: [Endpoint; 2],
    pub third: Option<Third>,
    wire: BTreeMap<(Instant, u64), (usize, Bytes)>,
    sent: u64,
    last_arrival: [Instant; 2],
    /// Until when each direction is taken by what was sent before.
    busy_until: [Instant; 2],
    buf: Vec<u8>,
}

impl World {
    pub fn new(seed: u64, weather: Weather, config: &Config) -> Self {
        let mut dice = Dice::new(seed);
        let ends = [0, 1].map(|_| Endpoint::new(config.clone(), dice.seed()));
        World {
            now: Instant::ZERO + Duration::from_secs(1),
            dice,
            weather,
            bytes_per_second: u64::MAX,
            size_max: usize::MAX,
            ends,
            third: None,
            wire: BTreeMap::new(),
            sent: 0,
            last_arrival: [Instant::ZERO; 2],
            busy_until: [Instant::ZERO; 2],
            buf: Vec::new(),
        }
    }

    /// Sends everything that is ready.
    pub fn transmit(&mut self) {
        for side in [CLIENT, SERVER] {
            while let Some(transmit) = self.ends[side].poll_transmit(self.now, &mut self.buf) {
                assert_eq!(transmit.to, address(1 - side));
                let segment = transmit.segment_size.unwrap_or(transmit.len);
                let batch = Bytes::copy_from_slice(&self.buf[..transmit.len]);
                for start in (0..batch.len()).step_by(segment) {
                    self.launch_heard(1 - side, batch.slice(start..batch.len().min(start + segment)));
                }
            }
        }
    }

    fn launch_heard(&mut self, to: usize, datagram: Bytes) {
        let more = match &mut self.third {
            Some(third) => third(&mut self.dice, to, &datagram),
            None => Vec::new(),
        };
        self.launch(to, datagram);
        more.into_iter().for_each(|(to, datagram)| self.launch(to, datagram));
    }

    fn launch(&mut self, to: usize, datagram: Bytes) {
        let transmission =
            Duration::from_nanos(datagram.len() as u64 * 1_000_000_000 / self.bytes_per_second);
        self.busy_until[to] = self.busy_until[to].max(self.now) + transmission;
        if datagram.len() > self.size_max || self.dice.per_mille(self.weather.loss) {
            return;
        }
        let copies = 1 + u64::from(self.dice.per_mille(self.weather.repeat));
        for _ in 0..copies {
            let spread = self.weather.delay_max_us - self.weather.delay_min_us;
            let delay = self.weather.delay_min_us + self.dice.below(spread + 1);
            let mut at = self.busy_until[to] + Duration::from_micros(delay);
            if self.weather.in_order {
                at = at.max(self.last_arrival[to]);
                self.last_arrival[to] = at;
            }
            self.sent += 1;
            self.wire.insert((at, self.sent), (to, datagram.clone()));
        }
    }

    /// Time of the next event, if there is one.
    pub fn next(&self) -> Option<Instant> {
        let arrival = self.wire.keys().next().map(|(at, _)| *at);
        let timers = self.ends.iter().filter_map(Endpoint::poll_timeout);
        timers.chain(arrival).min()
    }

    /// Advances the clock to `at` and handles everything due.
    pub fn advance(&mut self, at: Instant) {
        self.now = self.now.max(at);
        while let Some((&(at, serial), _)) = self.wire.first_key_value() {
            if at > self.now {
                break;
            }
            let Some((to, datagram)) = self.wire.remove(&(at, serial)) else { break };
            self.ends[to].handle_datagram(self.now, address(1 - to), datagram);
        }
        for end in &mut self.ends {
            end.handle_timeout(self.now);
        }
    }

    pub fn wire_is_empty(&self) -> bool {
        self.wire.is_empty()
    }
}

/// Byte `at` of the stream numbered `stream`.
pub fn pattern_at(stream: u64, at: usize) -> u8 {
    (stream.wrapping_mul(131).wrapping_add(at as u64 * 31) ^ (at as u64 >> 8)) as u8
}

pub fn pattern(stream: u64, from: usize, len: usize) -> Bytes {
    (from..from + len).map(|at| pattern_at(stream, at)).collect::<Vec<u8>>().into()
}
