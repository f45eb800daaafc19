//! What the adversary has spent of its budget, which is one for all its addresses, and what of each move has reached its target.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::Instant;
use afs_sim::Seen;
use bytes::Bytes;
use parking_lot::Mutex;

use super::addresses::is_third;
use super::moves::Move;

/// Packets, bytes and streams of one run, of all addresses together.
const PACKETS: u64 = 60_000;
const BYTES: u64 = 32 << 20;
const STREAMS: u64 = 4096;

/// Shared by the adversary, by whoever answers for its hosts, and by the checks at the end.
#[derive(Clone, Default, Debug)]
pub struct Account(Arc<Mutex<Inner>>);

#[derive(Default, Debug)]
struct Inner {
    spent: Spent,
    playing: Option<Move>,
    /// Packets on their way, with the move that each is part of; none for the answers of its hosts.
    on_the_way: BTreeMap<(SocketAddr, SocketAddr), VecDeque<OnTheWay>>,
    reached: BTreeMap<Move, u64>,
    sources: BTreeSet<IpAddr>,
}

#[derive(Debug)]
struct OnTheWay {
    since: Instant,
    data: Bytes,
    of: Option<Move>,
}

/// What was spent.
#[derive(Clone, Copy, Default, Debug)]
pub struct Spent {
    /// Datagrams.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Streams that were opened.
    pub streams: u64,
}

impl Account {
    /// Whether something is left of the budget.
    pub(super) fn has_some(&self) -> bool {
        let Spent { packets, bytes, streams } = self.0.lock().spent;
        packets < PACKETS && bytes < BYTES && streams < STREAMS
    }

    pub(super) fn plays(&self, one: Move) {
        self.0.lock().playing = Some(one);
    }

    /// A packet leaves, as part of the move that is played, or as an answer.
    pub(super) fn sends(
        &self,
        now: Instant,
        (from, to): (SocketAddr, SocketAddr),
        data: &Bytes,
        is_answer: bool,
    ) {
        let mut inner = self.0.lock();
        inner.spent.packets += 1;
        inner.spent.bytes += data.len() as u64;
        let of = inner.playing.filter(|_| !is_answer);
        let packet = OnTheWay { since: now, data: data.clone(), of };
        inner.on_the_way.entry((from, to)).or_default().push_back(packet);
    }

    /// Forgets what was lost.
    pub(super) fn forget_lost(&self, now: Instant) {
        self.0.lock().on_the_way.retain(|_, packets| {
            packets.retain(|packet| now - packet.since < LOST_AFTER);
            !packets.is_empty()
        });
    }

    /// A datagram has arrived. One that was not given to [`Account::sends`] counts if an endpoint of the adversary's sent it.
    pub(super) fn arrived(&self, seen: &Seen) {
        let mut inner = self.0.lock();
        let of = match inner.take(seen) {
            Some(of) => of,
            None if is_third(seen.from) && !is_third(seen.to) => inner.playing,
            None => return,
        };
        if let Some(one) = of {
            *inner.reached.entry(one).or_default() += 1;
            inner.sources.insert(seen.from.ip());
        }
    }

    /// A stream of the adversary's was opened.
    pub(super) fn opens(&self, from: IpAddr) {
        let mut inner = self.0.lock();
        inner.spent.streams += 1;
        inner.sources.insert(from);
        drop(inner);
        self.reaches(1);
    }

    /// The move that is played has had so many effects where it was aimed.
    pub(super) fn reaches(&self, count: u64) {
        let mut inner = self.0.lock();
        if let Some(one) = inner.playing {
            *inner.reached.entry(one).or_default() += count;
        }
    }

    /// What of a move has reached its target.
    #[must_use]
    pub fn reached(&self, one: Move) -> u64 {
        self.0.lock().reached.get(&one).copied().unwrap_or(0)
    }

    /// The addresses from which something has.
    #[must_use]
    pub fn sources(&self) -> usize {
        self.0.lock().sources.len()
    }

    /// What was spent.
    #[must_use]
    pub fn spent(&self) -> Spent {
        self.0.lock().spent
    }

    /// Whether no more was spent than there is. A move that is played is played to its end.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        let Spent { packets, bytes, streams } = self.spent();
        packets <= PACKETS + 1000 && bytes <= BYTES + (4 << 20) && streams <= STREAMS + 100
    }
}

impl Inner {
    /// The first packet on its way that is this one.
    fn take(&mut self, seen: &Seen) -> Option<Option<Move>> {
        let queue = self.on_the_way.get_mut(&(seen.from, seen.to))?;
        let at = queue.iter().position(|packet| packet.data == seen.data)?;
        let OnTheWay { of, .. } = queue.remove(at)?;
        if queue.is_empty() {
            self.on_the_way.remove(&(seen.from, seen.to));
        }
        Some(of)
    }
}

/// No packet is on its way for so long.
const LOST_AFTER: Duration = Duration::from_secs(1);
