//! Tests of the drive over stores in memory: without faults here, with faults and crashes in the other files.

mod addresses;
mod admission;
mod crashes;
mod faults;
mod faulty_bucket;
mod listings;
mod ownership;
mod reads;
mod suite;

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use afs_env::Parts;

use super::*;
use crate::bucket::{Page, Reply};
use crate::memory_bucket::MemoryBucket;

const OWNER: OwnerId = OwnerId(*b"a store for test");

/// The value of work that does not wait.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("work done at once leaves nothing pending"),
    }
}

fn data(seed: u8, len: usize) -> Bytes {
    (0..len).map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed)).collect::<Vec<_>>().into()
}

fn whole(chunk: ChunkRef) -> Range<u32> {
    0..chunk.len
}

/// Live chunks in a list.
struct Live(Vec<ChunkRef>);

impl LiveChunks for Live {
    fn live_between(&self, first: ChunkId, last: ChunkId) -> Result<Vec<ChunkRef>, DriveError> {
        let mut live: Vec<_> =
            self.0.iter().copied().filter(|chunk| (first..=last).contains(&chunk.id)).collect();
        live.sort_unstable();
        Ok(live)
    }
}

/// Packs of at most 1 MiB.
fn small() -> Config {
    Config { pack_bytes: 1 << 20, ..Config::default() }
}

fn create(bucket: &MemoryBucket) -> BucketDrive {
    now(BucketDrive::create(Arc::new(bucket.clone()), OWNER, Parts::inline(), small())).unwrap()
}

/// The keys of packs in a store.
fn packs_in(bucket: &MemoryBucket) -> Vec<String> {
    bucket.objects().into_iter().map(|(key, _)| key).filter(|key| key.starts_with("packs/")).collect()
}

/// A store that counts its requests.
#[derive(Clone, Default)]
struct Counting {
    objects: MemoryBucket,
    gets: Arc<std::sync::atomic::AtomicUsize>,
}

impl Counting {
    fn gets(&self) -> usize {
        self.gets.load(std::sync::atomic::Ordering::Relaxed)
    }
}

impl Bucket for Counting {
    fn put_new(&self, key: &str, body: Vec<Bytes>) -> Reply<()> {
        self.objects.put_new(key, body)
    }

    fn get(&self, key: &str, range: Range<u64>) -> Reply<Bytes> {
        self.gets.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.objects.get(key, range)
    }

    fn list(&self, prefix: &str, after: Option<&str>) -> Reply<Page> {
        self.objects.list(prefix, after)
    }

    fn delete(&self, key: &str) -> Reply<()> {
        self.objects.delete(key)
    }
}
