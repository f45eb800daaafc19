//! Resource accounting of stores in progress: memory of bytes not yet on the drive, space of bytes not yet
//! part of a file, reserved quota, and time. A store that never finishes is bounded in all four.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::admission::{Bounds, Class, Origin, Tally};
use afs_rpc::sync::Notify;
use afs_wire::error::AbortCode;
use afs_wire::ids::VolumeId;
use parking_lot::Mutex;

/// Bytes in memory of one store: one slot being filled and three being written.
const STORE_MAX: u64 = 4 << 20;
/// Bytes in memory of all stores, and of those from one address.
const MEMORY_MAX: usize = 256 << 20;
const ADDRESS_MAX: usize = 64 << 20;
/// Most stores in progress: of all clients, and of the clients at one address. A further one is answered
/// VBUSY. All are of one class: who begins a store has the right to write.
const STORES_MAX: usize = 16_384;
const ADDRESS_STORES_MAX: usize = 1024;
/// How long a store may be silent; shorter while others wait for memory.
const IDLE_MAX: Duration = Duration::from_secs(60);
const IDLE_CONTENDED_MAX: Duration = Duration::from_secs(10);
/// Bytes per second that a store must average, after the first minute.
const RATE_MIN: u64 = 4096;

/// All stores in progress of a server.
#[derive(Default)]
pub(crate) struct Stores {
    state: Mutex<State>,
    /// Notified when memory is freed.
    freed: Notify,
}

struct State {
    stores: Tally,
    /// Bytes of memory.
    memory: Tally,
    waiting: usize,
    volumes: BTreeMap<VolumeId, Room>,
}

impl Default for State {
    fn default() -> Self {
        State {
            stores: Tally::new(Bounds::of(STORES_MAX, ADDRESS_STORES_MAX)),
            memory: Tally::new(Bounds::of(MEMORY_MAX, ADDRESS_MAX)),
            waiting: 0,
            volumes: BTreeMap::new(),
        }
    }
}

/// Space in one volume used by the stores in progress there.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Room {
    /// Bytes on the drive that are not yet part of a file.
    pub(crate) bytes: u64,
    /// Bytes by which files will grow, whether received or not.
    pub(crate) growth: u64,
}

/// One store in progress.
pub(crate) struct StoreUnderWay {
    stores: Arc<Stores>,
    origin: Origin,
    volume: VolumeId,
    /// Bytes announced by the client.
    length: u64,
    memory: usize,
    taken: Room,
    /// Time spent waiting for the client: in all, and since the last byte.
    waited: Duration,
    idle: Duration,
}

impl Stores {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Begins a store of `length` bytes by a client at `address`, by which a file grows by `growth` bytes;
    /// this much of the volume's quota is reserved.
    ///
    /// # Errors
    /// `VBUSY` when too many are in progress.
    pub(crate) fn begin(
        self: &Arc<Self>,
        address: IpAddr,
        volume: VolumeId,
        length: u64,
        growth: u64,
    ) -> Result<StoreUnderWay, AbortCode> {
        let (origin, mut state) = (Origin::of(address), self.state.lock());
        if !state.stores.take(Class::Known, origin, 1) {
            return Err(AbortCode::VBUSY);
        }
        let room = state.volumes.entry(volume).or_default();
        room.growth = room.growth.saturating_add(growth);
        drop(state);
        let (stores, taken) = (self.clone(), Room { bytes: 0, growth });
        let (waited, idle) = (Duration::ZERO, Duration::ZERO);
        Ok(StoreUnderWay { stores, origin, volume, length, memory: 0, taken, waited, idle })
    }

    /// Reserves quota of a volume beside the stores in progress: `bytes` tells how much, of the growth that is reserved
    /// already.
    pub(crate) fn hold_space(
        self: &Arc<Self>,
        volume: VolumeId,
        bytes: impl FnOnce(u64) -> u64,
    ) -> SpaceHeld {
        let mut state = self.state.lock();
        let reserved = state.volumes.get(&volume).map_or(0, |room| room.growth);
        let bytes = bytes(reserved);
        if bytes > 0 {
            let room = state.volumes.entry(volume).or_default();
            room.growth = room.growth.saturating_add(bytes);
        }
        SpaceHeld { stores: self.clone(), volume, bytes }
    }

    /// Whether no store is in progress.
    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state.lock();
        let tallies = [&state.stores, &state.memory];
        tallies.iter().all(|tally| (tally.count(), tally.networks()) == (0, 0)) && state.volumes.is_empty()
    }

    fn is_contended(&self) -> bool {
        self.state.lock().waiting > 0
    }
}

impl StoreUnderWay {
    /// Waits for the store's memory, and takes all of it at once. The wait is bounded: stores that hold
    /// memory and send nothing are ended.
    pub(crate) async fn take_memory(&mut self) {
        let memory = self.length.min(STORE_MAX) as usize;
        if self.memory > 0 {
            return;
        }
        loop {
            let freed = self.stores.freed.notified();
            if self.stores.state.lock().memory.take(Class::Known, self.origin, memory) {
                self.memory = memory;
                return;
            }
            let _waiting = WaitingForMemory::new(&self.stores);
            freed.await;
        }
    }

    /// Longest wait for the next bytes, before [`StoreUnderWay::waited`].
    pub(crate) fn patience(&self) -> Duration {
        IDLE_CONTENDED_MAX
    }

    /// Adds time spent waiting for the client; `in_vain` says that nothing arrived. Returns whether the store
    /// may continue.
    pub(crate) fn waited(&mut self, time: Duration, in_vain: bool) -> bool {
        self.waited += time;
        self.idle = if in_vain { self.idle + time } else { Duration::ZERO };
        let idle_max = if self.stores.is_contended() { IDLE_CONTENDED_MAX } else { IDLE_MAX };
        let due = IDLE_MAX + Duration::from_secs(self.taken.bytes / RATE_MIN);
        self.idle < idle_max && self.waited <= due
    }

    /// Frees the memory: all bytes are on the drive.
    pub(crate) fn give_back_memory(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        if memory > 0 {
            let mut state = self.stores.state.lock();
            state.memory.remove(Class::Known, self.origin, memory);
            drop(state);
            self.stores.freed.notify_waiters();
        }
    }

    /// Frees the quota and the space that are reserved: nothing becomes a file's.
    pub(crate) fn give_back_room(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        take_away(&mut self.stores.state.lock().volumes, self.volume, |left| {
            left.bytes -= taken.bytes;
            left.growth = left.growth.saturating_sub(taken.growth);
        });
    }

    /// Adds time that the store spent between two calls, without memory.
    pub(crate) fn rested(&mut self, time: Duration) {
        self.waited += time;
        self.idle += time;
    }

    /// How long the store may rest.
    pub(crate) fn time_left(&self) -> Duration {
        let due = IDLE_MAX + Duration::from_secs(self.taken.bytes / RATE_MIN);
        IDLE_MAX.saturating_sub(self.idle).min(due.saturating_sub(self.waited))
    }

    /// Counts received bytes; returns the space in use by stores in the volume.
    pub(crate) fn came(&mut self, bytes: u64) -> Room {
        self.taken.bytes += bytes;
        let mut state = self.stores.state.lock();
        let room = state.volumes.entry(self.volume).or_default();
        room.bytes += bytes;
        *room
    }

    /// The space in use by stores in the volume.
    pub(crate) fn room(&self) -> Room {
        self.stores.state.lock().volumes.get(&self.volume).copied().unwrap_or_default()
    }

    /// Bytes on the drive that are not yet part of a file, in all volumes.
    pub(crate) fn everywhere(&self) -> u64 {
        self.stores.state.lock().volumes.values().map(|room| room.bytes).sum()
    }
}

impl Drop for StoreUnderWay {
    fn drop(&mut self) {
        self.give_back_memory();
        self.give_back_room();
        self.stores.state.lock().stores.remove(Class::Known, self.origin, 1);
    }
}

/// Quota that is reserved for changes to come.
pub(crate) struct SpaceHeld {
    stores: Arc<Stores>,
    volume: VolumeId,
    bytes: u64,
}

impl SpaceHeld {
    /// Bytes that are left of it.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes over what is left of another reservation of the same volume.
    pub(crate) fn add(&mut self, mut other: SpaceHeld) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// The volume itself accounts for so many bytes from now on.
    pub(crate) fn use_up(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        let mut state = self.stores.state.lock();
        take_away(&mut state.volumes, self.volume, |left| left.growth = left.growth.saturating_sub(bytes));
    }
}

impl Drop for SpaceHeld {
    fn drop(&mut self) {
        self.use_up(self.bytes);
    }
}

/// Changes an entry, and removes it when nothing is left of it.
fn take_away<K: Ord, V: Default + PartialEq>(map: &mut BTreeMap<K, V>, key: K, take: impl FnOnce(&mut V)) {
    if let Some(left) = map.get_mut(&key) {
        take(left);
        if *left == V::default() {
            map.remove(&key);
        }
    }
}

/// A store that waits for memory.
struct WaitingForMemory<'a>(&'a Stores);

impl<'a> WaitingForMemory<'a> {
    fn new(stores: &'a Stores) -> Self {
        stores.state.lock().waiting += 1;
        WaitingForMemory(stores)
    }
}

impl Drop for WaitingForMemory<'_> {
    fn drop(&mut self) {
        self.0.state.lock().waiting -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    const VOLUME: VolumeId = VolumeId(7);

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn begin(stores: &Arc<Stores>, last: u8, length: u64, growth: u64) -> StoreUnderWay {
        stores.begin(address(last), VOLUME, length, growth).unwrap()
    }

    /// Whether memory is available at once.
    fn has_memory(store: &mut StoreUnderWay) -> bool {
        let mut taking = std::pin::pin!(store.take_memory());
        taking.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn memory_is_bounded_for_each_address_and_for_all() {
        let stores = Stores::new();
        let mut held = Vec::new();
        let mut refused = 0;
        for n in 0..8 {
            for _ in 0..20 {
                let mut store = begin(&stores, n, 1 << 40, 0);
                match has_memory(&mut store) {
                    true => held.push(store),
                    false => refused += 1,
                }
            }
        }
        assert_eq!((held.len(), refused), (64, 96));
        assert_eq!(stores.state.lock().memory.count(), MEMORY_MAX);
        let mut next = begin(&stores, 9, STORE_MAX, 0);
        assert!(!has_memory(&mut next));
        held.pop();
        assert!(has_memory(&mut next));
        drop((held, next));
        assert!(stores.is_idle());
    }

    #[test]
    fn one_address_has_so_many_stores_and_no_more() {
        let stores = Stores::new();
        let mut held: Vec<_> = (0..ADDRESS_STORES_MAX).map(|_| begin(&stores, 1, 5, 0)).collect();
        assert_eq!(stores.begin(address(1), VOLUME, 5, 0).err(), Some(AbortCode::VBUSY));
        held.pop();
        held.push(begin(&stores, 1, 5, 0));
        for n in 2..=16 {
            held.extend((0..ADDRESS_STORES_MAX).map(|_| begin(&stores, n, 5, 0)));
        }
        assert_eq!(stores.begin(address(20), VOLUME, 5, 0).err(), Some(AbortCode::VBUSY), "all together");
        drop(held);
        assert!(stores.is_idle());
    }

    #[test]
    fn a_store_that_sends_nothing_or_very_little_ends() {
        let stores = Stores::new();
        let ten = Duration::from_secs(10);
        let mut silent = begin(&stores, 1, 1 << 40, 0);
        let waits = (1..).find(|_| !silent.waited(ten, true));
        assert_eq!(waits, Some(6));
        let mut slow = begin(&stores, 1, 1 << 40, 0);
        let waits = (1..).find(|_| {
            slow.came(10_000);
            !slow.waited(ten, false)
        });
        assert!(waits.is_some_and(|waits| waits < 10));
        let mut steady = begin(&stores, 1, 1 << 40, 0);
        for _ in 0..10_000 {
            steady.came(50_000);
            assert!(steady.waited(ten, false));
        }
    }

    #[test]
    fn room_is_kept_from_the_beginning_and_bytes_are_counted_as_they_come() {
        let stores = Stores::new();
        let mut one = begin(&stores, 1, 1 << 40, 100);
        let mut two = begin(&stores, 2, 1 << 40, 0);
        assert_eq!(two.room(), Room { bytes: 0, growth: 100 });
        assert_eq!(one.came(60), Room { bytes: 60, growth: 100 });
        assert_eq!(one.came(60), Room { bytes: 120, growth: 100 });
        assert_eq!(two.came(60), Room { bytes: 180, growth: 100 });
        assert_eq!(two.everywhere(), 180);
        drop(one);
        assert_eq!(two.came(1), Room { bytes: 61, growth: 0 });
        drop(two);
        assert!(stores.is_idle());
    }

    #[test]
    fn the_time_left_to_a_store_follows_the_bytes_received() {
        let (stores, second) = (Stores::new(), Duration::from_secs(1));
        let mut store = begin(&stores, 1, 1 << 40, 0);
        assert_eq!(store.time_left(), IDLE_MAX);
        assert!(store.waited(40 * second, true));
        assert_eq!(store.time_left(), IDLE_MAX - 40 * second);
        store.came(RATE_MIN * 5);
        assert!(store.waited(10 * second, false));
        assert_eq!(store.time_left(), 15 * second);
        assert!(!store.waited(16 * second, false));
        assert_eq!(store.time_left(), Duration::ZERO);
    }
}
