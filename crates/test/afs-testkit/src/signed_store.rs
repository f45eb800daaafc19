//! Simulated object store that signs addresses and answers reads by them, well or badly.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use afs_bucket::{Bucket, Failure, MemoryBucket, Page, Reply};
use afs_rpc::{BoxFuture, EnvRef};
use afs_venus::{ObjectError, ObjectReader};
use bytes::Bytes;
use parking_lot::Mutex;

/// What the store does with a read by address, or with its signature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreConduct {
    /// What it should.
    Right,
    /// It replies a status in the place of the bytes.
    Status(u16),
    /// It cannot be reached.
    Away,
    /// The reply ends early.
    Cut,
    /// More or fewer bytes come.
    Length,
    /// As many bytes as were asked for, of which one is wrong.
    Wrong,
    /// Nothing comes.
    Silent,
    /// The address that is signed leads to another store.
    Elsewhere,
    /// No address is signed.
    SignsNothing,
}

/// An object store in memory. Clones are the same.
///
/// An address permits one range of one object until it expires, as those of S3 do whose signature covers the header `Range`.
#[derive(Clone)]
pub struct SignedStore(Arc<Inner>);

struct Inner {
    objects: MemoryBucket,
    env: EnvRef,
    conduct: Mutex<StoreConduct>,
    reads: AtomicUsize,
}

const PLACE: &str = "https://store.example/";

impl SignedStore {
    /// An empty store with the clock of a machine.
    #[must_use]
    pub fn new(env: EnvRef) -> Self {
        let (objects, conduct) = (MemoryBucket::default(), Mutex::new(StoreConduct::Right));
        Self(Arc::new(Inner { objects, env, conduct, reads: AtomicUsize::new(0) }))
    }

    /// Sets what it does from now on.
    pub fn set_conduct(&self, conduct: StoreConduct) {
        *self.0.conduct.lock() = conduct;
    }

    /// How many reads by address it has seen.
    #[must_use]
    pub fn reads(&self) -> usize {
        self.0.reads.load(Ordering::Relaxed)
    }

    /// How many packs of chunks are in it.
    #[must_use]
    pub fn packs(&self) -> usize {
        self.0.objects.objects().iter().filter(|(key, _)| key.starts_with("packs/")).count()
    }

    fn conduct(&self) -> StoreConduct {
        *self.0.conduct.lock()
    }

    fn signed(&self, address: &str, range: &Range<u64>) -> Result<Bytes, ObjectError> {
        let parts = address.strip_prefix(PLACE).and_then(|rest| rest.split_once('?'));
        let (key, query) = parts.ok_or(ObjectError::Forbidden)?;
        let until = query.split('-').next().and_then(|until| until.parse().ok()).unwrap_or_default();
        if query != signature(key, range, until) || self.0.env.wall().secs > until {
            return Err(ObjectError::Status(403));
        }
        let object = self.0.objects.object(key).ok_or(ObjectError::Status(404))?;
        let whole = range.start as usize..range.end as usize;
        if whole.end > object.len() { Err(ObjectError::Status(416)) } else { Ok(object.slice(whole)) }
    }

    fn read_now(&self, address: &str, range: &Range<u64>) -> Result<Bytes, ObjectError> {
        self.0.reads.fetch_add(1, Ordering::Relaxed);
        let bytes = self.signed(address, range)?;
        match self.conduct() {
            StoreConduct::Status(status) => Err(ObjectError::Status(status)),
            StoreConduct::Away => Err(ObjectError::Unreachable),
            StoreConduct::Cut => Err(ObjectError::Broken),
            StoreConduct::Length => Err(ObjectError::Length),
            StoreConduct::Wrong => {
                let mut bytes = bytes.to_vec();
                bytes.iter_mut().take(1).for_each(|byte| *byte ^= 1);
                Ok(bytes.into())
            }
            _ => Ok(bytes),
        }
    }
}

/// What only the store can make, of everything that the address permits.
fn signature(key: &str, range: &Range<u64>, until: u64) -> String {
    format!("{until}-{}-{}-{}", range.start, range.end, key.len())
}

impl Bucket for SignedStore {
    fn put_new(&self, key: &str, body: Vec<Bytes>) -> Reply<()> {
        self.0.objects.put_new(key, body)
    }

    fn get(&self, key: &str, range: Range<u64>) -> Reply<Bytes> {
        self.0.objects.get(key, range)
    }

    fn list(&self, prefix: &str, after: Option<&str>) -> Reply<Page> {
        self.0.objects.list(prefix, after)
    }

    fn delete(&self, key: &str) -> Reply<()> {
        self.0.objects.delete(key)
    }

    fn signed_address(&self, key: &str, range: Range<u64>, at: SystemTime, seconds: u32) -> Reply<String> {
        let until = at + Duration::from_secs(seconds.into());
        let until = until.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let query = signature(key, &range, until);
        let signed = match self.conduct() {
            StoreConduct::SignsNothing => Err(Failure::Denied("there are no credentials".into())),
            StoreConduct::Elsewhere => Ok(format!("http://127.0.0.1/{key}?{query}")),
            _ => Ok(format!("{PLACE}{key}?{query}")),
        };
        Box::pin(async { signed })
    }
}

impl ObjectReader for SignedStore {
    fn read(&self, address: &str, range: Range<u64>) -> BoxFuture<'static, Result<Bytes, ObjectError>> {
        let (me, address) = (self.clone(), address.to_owned());
        Box::pin(async move {
            let bytes = me.read_now(&address, &range);
            if me.conduct() == StoreConduct::Silent {
                std::future::pending::<()>().await;
            }
            bytes
        })
    }
}
