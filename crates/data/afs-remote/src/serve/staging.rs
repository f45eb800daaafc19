//! Table of the chunks that clients have staged and nobody has claimed, by store and id; bounded in chunks, bytes and time.
//!
//! A chunk leaves the table when the file server claims it, and is the file server's then; or it is discarded: when its client
//! gives it up, or after [`STAGED_LIFE`]. The table is not kept over a start of the drive; the next sweep frees what was in it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::{ClaimId, Refusal, StagingTag, StoreNumber};
use afs_datapath::frame::STAGED_CHUNKS_MAX;
use afs_datapath::session::{Failure, Room};
use afs_drive::{BLOCK, ChunkId, ChunkRef, Usage};
use afs_env::Instant;
use afs_env::admission::{Bounds, Class, Origin, Tally};
use afs_env::sync::{OwnedSemaphorePermit, Semaphore};
use parking_lot::Mutex;

/// How long a chunk stays staged that nobody claims.
pub const STAGED_LIFE: Duration = Duration::from_secs(600);
/// Most staged chunks of all stores.
const CHUNKS_MAX: usize = 65_536;
/// Most chunks whose bytes are on their way: of all clients, and of those at one address. Each may be 1 MiB in memory.
const ARRIVING_MAX: usize = 32;
const ADDRESS_ARRIVING_MAX: usize = 16;
/// Claims that are remembered, in case their replies were lost.
const CLAIMS_MAX: usize = 4096;
/// Bytes of a store, of all rooms together, after which they are made durable: no more than these does a claim wait for.
const LOOSE_MAX: u64 = 64 << 20;
/// Share of the medium, and of its free space, that staged chunks may take.
const SHARE_OF_ALL: u64 = 4;
const SHARE_OF_FREE: u64 = 2;

/// The staged chunks of a drive.
pub(super) struct Staging {
    state: Mutex<State>,
    /// Those that wait for memory or have it, by address; the memory of all.
    arrivals: Mutex<Tally>,
    arriving: Arc<Semaphore>,
}

type Key = (StoreNumber, ChunkId);
type RoomKey = (StoreNumber, StagingTag);

#[derive(Default)]
struct State {
    chunks: BTreeMap<Key, Staged>,
    /// The same, by age.
    by_age: BTreeSet<(Instant, Key)>,
    /// What rooms have staged or reserved; none is empty.
    rooms: BTreeMap<RoomKey, InRoom>,
    all: Share,
    /// Bytes of each store that were staged since its drive was last asked to make them durable.
    loose: BTreeMap<StoreNumber, u64>,
    claims: BTreeSet<(StoreNumber, ClaimId)>,
    /// The same, the latest at the end.
    latest_claims: VecDeque<(StoreNumber, ClaimId)>,
    is_watched: bool,
}

struct Staged {
    tag: StagingTag,
    chunk: ChunkRef,
    since: Instant,
}

#[derive(Default)]
struct InRoom {
    share: Share,
    /// The chunks that are written.
    chunks: BTreeSet<ChunkId>,
}

#[derive(Clone, Copy, Default)]
struct Share {
    chunks: usize,
    bytes: u64,
}

impl Share {
    fn add(&mut self, bytes: u64) {
        self.chunks += 1;
        self.bytes += bytes;
    }

    fn take(&mut self, bytes: u64) {
        self.chunks -= 1;
        self.bytes -= bytes;
    }
}

/// Space that a chunk counts for: whole blocks.
fn space(len: u32) -> u64 {
    u64::from(len).next_multiple_of(BLOCK)
}

impl Staging {
    pub fn new() -> Arc<Self> {
        let arrivals = Mutex::new(Tally::new(Bounds::of(usize::MAX, ADDRESS_ARRIVING_MAX)));
        Arc::new(Self { state: Mutex::default(), arrivals, arriving: Arc::new(Semaphore::new(ARRIVING_MAX)) })
    }

    /// Memory for the bytes of a chunk. Waits for that of others, who get 30 s for each step.
    ///
    /// # Errors
    /// [`Failure::Busy`] for an address with too many on their way.
    pub async fn arrive(self: &Arc<Self>, peer: IpAddr) -> Result<Arriving, Failure> {
        let origin = Origin::of(peer);
        if !self.arrivals.lock().take(Class::Known, origin, 1) {
            return Err(Failure::Busy);
        }
        let mut arriving = Arriving { staging: self.clone(), origin, _permit: None };
        let permit = self.arriving.clone().acquire_owned().await;
        arriving._permit = Some(permit.map_err(|_| Failure::Unavailable)?);
        Ok(arriving)
    }

    /// Reserves space in a room, before the bytes come.
    ///
    /// # Errors
    /// [`Refusal::OutOfRange`] for more than the room has; [`Failure::NoSpace`] for more than may be staged in all.
    pub fn reserve(
        self: &Arc<Self>,
        store: StoreNumber,
        room: &Room,
        length: u32,
        usage: Usage,
    ) -> Result<Reserved, Failure> {
        let (bytes, key) = (space(length), (store, room.tag));
        let mut state = self.state.lock();
        let used = state.rooms.get(&key).map(|room| room.share).unwrap_or_default();
        if used.bytes + bytes > room.bytes || used.chunks >= STAGED_CHUNKS_MAX as usize {
            return Err(Refusal::OutOfRange.into());
        }
        let most = (usage.total / SHARE_OF_ALL).min(usage.free / SHARE_OF_FREE);
        if state.all.chunks >= CHUNKS_MAX || state.all.bytes + bytes > most {
            tracing::warn!(staged = state.all.bytes, "no more chunks of clients can be staged");
            return Err(Failure::NoSpace);
        }
        state.rooms.entry(key).or_default().share.add(bytes);
        state.all.add(bytes);
        Ok(Reserved { staging: self.clone(), room: key, bytes, is_kept: false })
    }

    /// Whether a claim was made already. If it was not, the reply is an error unless it can be made.
    ///
    /// # Errors
    /// [`Failure::NotStaged`] if a chunk is not staged under the tag, or is named twice.
    pub fn is_claimed(
        &self,
        store: StoreNumber,
        claim: ClaimId,
        tag: StagingTag,
        chunks: &[ChunkRef],
    ) -> Result<bool, Failure> {
        self.state.lock().is_claimed(store, claim, tag, chunks)
    }

    /// Gives chunks that are durable to the file server, all or none; or once more what it got by the same claim.
    ///
    /// # Errors
    /// As [`Staging::is_claimed`], for what has left the table meanwhile.
    pub fn claim(
        &self,
        store: StoreNumber,
        claim: ClaimId,
        tag: StagingTag,
        chunks: &[ChunkRef],
    ) -> Result<(), Failure> {
        let mut state = self.state.lock();
        if state.is_claimed(store, claim, tag, chunks)? {
            return Ok(());
        }
        chunks.iter().for_each(|chunk| _ = state.remove((store, chunk.id)));
        state.remember((store, claim));
        Ok(())
    }

    /// Takes all that is staged under a tag out of the table, to be discarded.
    pub fn take_room(&self, store: StoreNumber, tag: StagingTag) -> Vec<ChunkRef> {
        let mut state = self.state.lock();
        let room = state.rooms.get(&(store, tag));
        let ids: Vec<_> = room.into_iter().flat_map(|room| &room.chunks).copied().collect();
        ids.into_iter().filter_map(|id| state.remove((store, id))).collect()
    }

    /// Takes chunks out of the table that the file server frees.
    pub fn drop_range(&self, store: StoreNumber, first: ChunkId, last: ChunkId) {
        let mut state = self.state.lock();
        let keys: Vec<_> = state.chunks.range((store, first)..=(store, last)).map(|(key, _)| *key).collect();
        keys.into_iter().for_each(|key| _ = state.remove(key));
    }

    /// Takes the chunks out of the table that are staged too long, to be discarded, by store; and when that is to be done next.
    /// Nothing is watched any more if it is never.
    pub fn take_overdue(&self, now: Instant) -> (BTreeMap<StoreNumber, Vec<ChunkRef>>, Option<Instant>) {
        let mut state = self.state.lock();
        let mut overdue: BTreeMap<_, Vec<_>> = BTreeMap::new();
        while let Some((since, key)) = state.by_age.first().copied() {
            if since + STAGED_LIFE > now {
                return (overdue, Some(since + STAGED_LIFE));
            }
            overdue.entry(key.0).or_default().extend(state.remove(key));
        }
        state.is_watched = false;
        (overdue, None)
    }

    /// Number of staged chunks.
    pub fn len(&self) -> usize {
        self.state.lock().chunks.len()
    }
}

impl State {
    fn find(&self, store: StoreNumber, tag: StagingTag, chunk: &ChunkRef) -> Option<&Staged> {
        self.chunks.get(&(store, chunk.id)).filter(|staged| staged.tag == tag && staged.chunk == *chunk)
    }

    fn is_claimed(
        &self,
        store: StoreNumber,
        claim: ClaimId,
        tag: StagingTag,
        chunks: &[ChunkRef],
    ) -> Result<bool, Failure> {
        if self.claims.contains(&(store, claim)) {
            return Ok(true);
        }
        let different: BTreeSet<_> = chunks.iter().map(|chunk| chunk.id).collect();
        let is_there = |chunk: &ChunkRef| self.find(store, tag, chunk).is_some();
        let are_staged = different.len() == chunks.len() && chunks.iter().all(is_there);
        if are_staged { Ok(false) } else { Err(Failure::NotStaged) }
    }

    fn remember(&mut self, claim: (StoreNumber, ClaimId)) {
        self.claims.insert(claim);
        self.latest_claims.push_back(claim);
        if self.latest_claims.len() > CLAIMS_MAX {
            let oldest = self.latest_claims.pop_front();
            oldest.map(|claim| self.claims.remove(&claim));
        }
    }

    fn remove(&mut self, key: Key) -> Option<ChunkRef> {
        let staged = self.chunks.remove(&key)?;
        self.by_age.remove(&(staged.since, key));
        if let Some(room) = self.rooms.get_mut(&(key.0, staged.tag)) {
            room.chunks.remove(&key.1);
        }
        self.release((key.0, staged.tag), space(staged.chunk.len));
        Some(staged.chunk)
    }

    fn release(&mut self, room: RoomKey, bytes: u64) {
        self.all.take(bytes);
        if let Some(of_room) = self.rooms.get_mut(&room) {
            of_room.share.take(bytes);
            if of_room.share.chunks == 0 {
                self.rooms.remove(&room);
            }
        }
    }
}

/// A chunk whose bytes are on their way, with its memory.
pub(super) struct Arriving {
    staging: Arc<Staging>,
    origin: Origin,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Drop for Arriving {
    fn drop(&mut self) {
        self.staging.arrivals.lock().remove(Class::Known, self.origin, 1);
    }
}

/// What is to be done after a chunk was put into the table.
pub(super) struct Kept {
    /// The table has to be watched from now on.
    pub is_first: bool,
    /// The store has so many bytes that are not durable that the drive is to make them so: claims wait for the rest.
    pub must_flush: bool,
}

/// Space in a room for a chunk that is not written yet.
pub(super) struct Reserved {
    staging: Arc<Staging>,
    room: RoomKey,
    bytes: u64,
    is_kept: bool,
}

impl Reserved {
    /// Puts the chunk into the table.
    pub fn keep(mut self, chunk: ChunkRef, now: Instant) -> Kept {
        let (store, tag) = self.room;
        let (key, mut state) = ((store, chunk.id), self.staging.state.lock());
        state.chunks.insert(key, Staged { tag, chunk, since: now });
        state.by_age.insert((now, key));
        state.rooms.entry(self.room).or_default().chunks.insert(chunk.id);
        let loose = state.loose.entry(store).or_default();
        *loose += self.bytes;
        let must_flush = *loose >= LOOSE_MAX;
        if must_flush {
            *loose = 0;
        }
        let is_first = !std::mem::replace(&mut state.is_watched, true);
        drop(state);
        self.is_kept = true;
        Kept { is_first, must_flush }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if !self.is_kept {
            self.staging.state.lock().release(self.room, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_that_are_remembered_are_bounded_and_the_oldest_go() {
        let staging = Staging::new();
        let claim = |n: usize| (StoreNumber(0), ClaimId(n as u128));
        for n in 0..=CLAIMS_MAX {
            staging.claim(claim(n).0, claim(n).1, StagingTag([0; StagingTag::LEN]), &[]).unwrap();
        }
        let state = staging.state.lock();
        assert_eq!((state.claims.len(), state.latest_claims.len()), (CLAIMS_MAX, CLAIMS_MAX));
        assert!(!state.claims.contains(&claim(0)) && state.claims.contains(&claim(CLAIMS_MAX)));
    }

    #[test]
    fn bytes_of_a_store_that_are_not_durable_are_bounded_for_all_rooms_together() {
        let (staging, usage) = (Staging::new(), Usage { free: 1 << 40, total: 1 << 40 });
        let stage = |store: u32, n: u32| {
            let room = Room { tag: StagingTag([(n % 5) as u8; StagingTag::LEN]), bytes: 1 << 40 };
            let reserved = staging.reserve(StoreNumber(store), &room, 1 << 20, usage).unwrap();
            let id = ChunkId::from_bytes(u128::from(n).to_be_bytes());
            reserved.keep(ChunkRef { id, len: 1 << 20, crc: 0 }, Instant(0)).must_flush
        };
        let most = (LOOSE_MAX >> 20) as u32;
        let flushed: Vec<u32> = (1..=2 * most).filter(|n| stage(0, *n)).collect();
        assert_eq!(flushed, [most, 2 * most], "a room has a fifth of them");
        assert!(!stage(1, 1), "another store has a count of its own");
    }
}
