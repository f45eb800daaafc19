//! Client-minutes of a trace in order of time, drawn from a seed.

use super::shape::{Class, Shape, Size};
use crate::split_mix::SplitMix;

/// Largest size of a request, as Table 4(b) has it.
const BYTES_MAX: f64 = 1_048_576.0;
/// Largest NFS transfer.
const BLOCK_LEN: f64 = 8192.0;
/// Distance of the classes from the limit between them, so that requests of many costs stay on their side of it.
const MARGIN: f64 = 1.15;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Milliseconds since the minute began.
    pub millisecond: u32,
    /// Its type, as a position in [`Class::operations`].
    pub operation: usize,
    /// Bytes of data; 0 if it has none.
    pub bytes: u32,
}

/// The requests of one client in one minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientMinute {
    /// Minutes since the trace began.
    pub minute: u32,
    /// Number of the client, from 0.
    pub client: u32,
    /// Whether it was drawn as a busy one.
    pub is_busy: bool,
    /// In order of time; one at least.
    pub requests: Vec<Request>,
}

/// Generator of a trace.
#[derive(Clone, Debug)]
pub struct Trace<'a> {
    shape: &'a Shape,
    random: SplitMix,
    /// Position of the next client-minute in `minute × clients + client`.
    slot: u64,
    slots: u64,
}

impl<'a> Trace<'a> {
    /// The first `minutes` of a trace, at most those that the shape has. The same seed gives the same trace, and fewer
    /// minutes its beginning.
    #[must_use]
    pub fn of(shape: &'a Shape, seed: u64, minutes: u32) -> Self {
        let slots = u64::from(minutes.min(shape.minutes)) * u64::from(shape.clients);
        let mut trace = Self { shape, random: SplitMix::of(seed), slot: 0, slots };
        trace.slot = trace.skipped();
        trace
    }

    /// The requests of busy client-minutes alone. The same seed gives the same.
    pub fn busy(shape: &'a Shape, seed: u64, minutes: u32) -> impl Iterator<Item = Vec<Request>> {
        let mut trace = Self { shape, random: SplitMix::of(seed), slot: 0, slots: 0 };
        (0..minutes).map(move |_| trace.requests(true))
    }

    /// Clients and minutes without requests until the next with some.
    fn skipped(&mut self) -> u64 {
        let idle = (1.0 - self.shape.active).max(f64::MIN_POSITIVE);
        ((1.0 - self.random.unit()).ln() / idle.ln()) as u64
    }

    fn requests(&mut self, is_busy: bool) -> Vec<Request> {
        let shape = self.shape;
        let class = if is_busy { &shape.busy } else { &shape.other };
        let least = if is_busy { shape.busy_min * MARGIN } else { 0.0 };
        // Rounding up adds half a request.
        let drawn =
            (least + self.random.exponential((class.requests - least - 0.5).max(0.1))).ceil().max(1.0);
        let most = if is_busy { f64::MAX } else { (shape.busy_min / MARGIN).max(1.0) };
        let mut requests: Vec<Request> = (0..drawn.min(most) as u64).map(|_| self.request(class)).collect();
        requests.sort_by_key(|request| request.millisecond);
        requests
    }

    fn request(&mut self, class: &Class) -> Request {
        let millisecond = (self.random.unit() * 60_000.0) as u32;
        let mut left = self.random.unit();
        let found = class.operations.iter().position(|operation| {
            left -= operation.probability;
            left < 0.0
        });
        let operation = found.unwrap_or(class.operations.len() - 1);
        let bytes = match class.operations[operation].size {
            Size::None => 0.0,
            Size::Block(full) if self.random.unit() < full => BLOCK_LEN,
            Size::Block(_) => 1.0 + self.random.unit() * (BLOCK_LEN - 1.0),
            Size::Exponential(mean) => self.random.exponential(mean).clamp(1.0, BYTES_MAX),
        };
        Request { millisecond, operation, bytes: bytes as u32 }
    }
}

impl Iterator for Trace<'_> {
    type Item = ClientMinute;

    fn next(&mut self) -> Option<ClientMinute> {
        if self.slot >= self.slots {
            return None;
        }
        let clients = u64::from(self.shape.clients);
        let (minute, client) = ((self.slot / clients) as u32, (self.slot % clients) as u32);
        let is_busy = self.random.unit() < self.shape.busy_share;
        let requests = self.requests(is_busy);
        self.slot += 1 + self.skipped();
        Some(ClientMinute { minute, client, is_busy, requests })
    }
}
