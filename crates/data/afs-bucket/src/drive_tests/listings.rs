//! Listings of a store that lies: they end, with an error or as far as they lead.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::bucket::Listed;

/// A store whose listings are false.
#[derive(Clone)]
struct Lying {
    objects: MemoryBucket,
    /// Key of the object that is the whole of the next page, by the number of the request.
    key: fn(&str, u64) -> String,
    asked: Arc<AtomicU64>,
}

impl Lying {
    fn new(objects: &MemoryBucket, key: fn(&str, u64) -> String) -> Self {
        Self { objects: objects.clone(), key, asked: Arc::default() }
    }
}

impl Bucket for Lying {
    fn put_new(&self, key: &str, body: Vec<Bytes>) -> Reply<()> {
        self.objects.put_new(key, body)
    }

    fn get(&self, key: &str, range: Range<u64>) -> Reply<Bytes> {
        self.objects.get(key, range)
    }

    fn list(&self, prefix: &str, _: Option<&str>) -> Reply<Page> {
        let key = (self.key)(prefix, self.asked.fetch_add(1, Ordering::Relaxed));
        Box::pin(async { Ok(Page { objects: vec![Listed { key, len: 9 }], more: true }) })
    }

    fn delete(&self, key: &str) -> Reply<()> {
        self.objects.delete(key)
    }
}

fn open(bucket: &Lying) -> BucketDrive {
    now(BucketDrive::open(Arc::new(bucket.clone()), OWNER, Parts::inline(), small())).unwrap()
}

#[test]
fn a_listing_that_never_ends_is_an_error() {
    let objects = MemoryBucket::default();
    drop(create(&objects));
    let bucket = Lying::new(&objects, |prefix, number| format!("{prefix}x{number:012}"));
    let drive = open(&bucket);
    // The first write looks for the runs of before.
    let error = now(drive.write(data(1, 1000))).unwrap_err().to_string();
    assert!(error.contains("does not end"), "{error}");
    assert_eq!(bucket.asked.load(Ordering::Relaxed), 100_000);
}

/// Pages that do not go on are the last: what they hide is looked for by its name.
#[test]
fn a_listing_that_repeats_itself_ends_and_hides_no_chunk() {
    let objects = MemoryBucket::default();
    let drive = create(&objects);
    let chunk = now(drive.write(data(1, 1000))).unwrap();
    now(drive.sync(&[chunk])).unwrap();
    drop(drive);
    let bucket = Lying::new(&objects, |prefix, _| format!("{prefix}x"));
    let drive = open(&bucket);
    let report = now(drive.sweep(Arc::new(Live(vec![chunk])))).unwrap();
    assert_eq!((report.live, report.missing.len()), (1, 0));
    assert!(bucket.asked.load(Ordering::Relaxed) < 20, "{:?}", bucket.asked);
    assert_eq!(now(drive.read(chunk, whole(chunk))).unwrap(), data(1, 1000));
}
