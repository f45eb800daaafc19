//! Object store in memory.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::bucket::{Bucket, Failure, Listed, Page, Reply};

/// A bucket in memory, for tests and the simulator. It serves at once and never fails. Clones share the objects.
#[derive(Clone, Default)]
pub struct MemoryBucket(Arc<Mutex<BTreeMap<String, Bytes>>>);

impl MemoryBucket {
    /// The keys of all objects, in order, with their lengths.
    #[must_use]
    pub fn objects(&self) -> Vec<(String, u64)> {
        self.0.lock().iter().map(|(key, object)| (key.clone(), object.len() as u64)).collect()
    }

    /// Replaces an object, whatever was there, as nothing but damage does. `None` removes it.
    pub fn replace(&self, key: &str, object: Option<Bytes>) {
        match object {
            Some(object) => _ = self.0.lock().insert(key.into(), object),
            None => _ = self.0.lock().remove(key),
        }
    }

    /// An object's bytes.
    #[must_use]
    pub fn object(&self, key: &str) -> Option<Bytes> {
        self.0.lock().get(key).cloned()
    }

    fn put_now(&self, key: &str, body: &[Bytes]) -> Result<(), Failure> {
        let mut objects = self.0.lock();
        if objects.contains_key(key) {
            return Err(Failure::Exists);
        }
        objects.insert(key.into(), body.concat().into());
        Ok(())
    }

    fn get_now(&self, key: &str, range: Range<u64>) -> Result<Bytes, Failure> {
        let object = self.object(key).ok_or(Failure::Missing)?;
        let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX).min(object.len());
        Ok(object.slice(at(range.start)..at(range.end)))
    }

    fn list_now(&self, prefix: &str, after: Option<&str>) -> Page {
        let objects = self.0.lock();
        let from = after.map_or(Bound::Included(prefix), Bound::Excluded);
        let mut matching = objects
            .range::<str, _>((from, Bound::Unbounded))
            .take_while(|(key, _)| key.as_str() < prefix || key.starts_with(prefix))
            .filter(|(key, _)| key.starts_with(prefix))
            .map(|(key, object)| Listed { key: key.clone(), len: object.len() as u64 });
        let objects = matching.by_ref().take(Page::OBJECTS_MAX).collect();
        Page { objects, more: matching.next().is_some() }
    }
}

impl Bucket for MemoryBucket {
    fn put_new(&self, key: &str, body: Vec<Bytes>) -> Reply<()> {
        let put = self.put_now(key, &body);
        Box::pin(async move { put })
    }

    fn get(&self, key: &str, range: Range<u64>) -> Reply<Bytes> {
        let got = self.get_now(key, range);
        Box::pin(async move { got })
    }

    fn list(&self, prefix: &str, after: Option<&str>) -> Reply<Page> {
        let page = self.list_now(prefix, after);
        Box::pin(async move { Ok(page) })
    }

    fn delete(&self, key: &str) -> Reply<()> {
        self.0.lock().remove(key);
        Box::pin(async { Ok(()) })
    }
}
