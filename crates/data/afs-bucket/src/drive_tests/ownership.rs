//! Tests of who may use a drive: owners, runs, and stores that do not keep what exists.

use super::*;

#[test]
fn a_drive_is_opened_by_its_owner_alone() {
    let bucket = MemoryBucket::default();
    let open = |owner| {
        let opened = now(BucketDrive::open(Arc::new(bucket.clone()), owner, Parts::inline(), small()));
        opened.map(drop).map_err(|error| error.to_string())
    };
    let error = open(OWNER).unwrap_err();
    assert!(error.contains("cannot get object owner"), "{error}");
    drop(create(&bucket));
    assert_eq!(open(OWNER), Ok(()));
    let other = OwnerId([7; 16]);
    let error = open(other).unwrap_err();
    assert!(error.contains(&format!("belongs to the store {OWNER}")) && error.contains(&other.to_string()));
    let made = now(BucketDrive::create(Arc::new(bucket.clone()), other, Parts::inline(), small()));
    assert!(made.is_err(), "making a drive does not take another's");
    assert_eq!(open(OWNER), Ok(()));
    bucket.replace("owner", Some(Bytes::from_static(b"something of these 24 bytes")));
    assert!(open(OWNER).unwrap_err().contains("object owner is damaged"));
}

#[test]
fn the_later_run_ends_the_earlier_one() {
    let bucket = MemoryBucket::default();
    let (first, second) = (create(&bucket), create(&bucket));
    let old = now(first.write(data(1, 100))).unwrap();
    now(first.sync(&[])).unwrap();
    let unsynced = now(first.write(data(2, 100))).unwrap();
    let newer = now(second.write(data(3, 100))).unwrap();
    assert!(newer > unsynced);
    now(second.sync(&[])).unwrap();
    let error = now(first.sync(&[])).unwrap_err().to_string();
    assert!(error.contains("another server has opened this drive"), "{error}");
    assert!(matches!(now(first.write(data(4, 100))), Err(DriveError::NeedsReopen)));
    assert!(matches!(now(first.sync(&[])), Err(DriveError::NeedsReopen)));
    // It deletes nothing any more, and shows what it has.
    assert!(now(first.discard(vec![old, unsynced])).is_err());
    assert_eq!(now(second.read(old, 0..100)).unwrap(), data(1, 100));
    assert_eq!(now(first.read(newer, 0..100)).unwrap(), data(3, 100));
}

/// A store that overwrites whatever is there.
struct Overwriting(MemoryBucket);

impl Bucket for Overwriting {
    fn put_new(&self, key: &str, body: Vec<Bytes>) -> Reply<()> {
        self.0.replace(key, Some(body.concat().into()));
        Box::pin(async { Ok(()) })
    }

    fn get(&self, key: &str, range: Range<u64>) -> Reply<Bytes> {
        self.0.get(key, range)
    }

    fn list(&self, prefix: &str, after: Option<&str>) -> Reply<Page> {
        self.0.list(prefix, after)
    }

    fn delete(&self, key: &str) -> Reply<()> {
        self.0.delete(key)
    }
}

#[test]
fn a_store_that_overwrites_is_not_used() {
    let bucket = Arc::new(Overwriting(MemoryBucket::default()));
    let drive = now(BucketDrive::create(bucket.clone(), OWNER, Parts::inline(), small())).unwrap();
    let error = now(drive.write(data(1, 10))).unwrap_err().to_string();
    assert!(error.contains("If-None-Match"), "{error}");
    assert!(packs_in(&bucket.0).is_empty());
}

#[test]
fn a_pack_of_another_run_with_the_number_is_never_overwritten() {
    let bucket = MemoryBucket::default();
    let drive = create(&bucket);
    let chunk = now(drive.write(data(1, 10))).unwrap();
    let theirs = data(9, 500);
    bucket.replace("packs/0000000100000000", Some(theirs.clone()));
    let error = now(drive.sync(&[])).unwrap_err().to_string();
    assert!(error.contains("put object packs/0000000100000000") && error.contains("exists"), "{error}");
    assert!(matches!(now(drive.sync(&[])), Err(DriveError::NeedsReopen)));
    assert_eq!(bucket.object("packs/0000000100000000"), Some(theirs));
    assert_eq!(now(drive.read(chunk, 0..10)).unwrap(), data(1, 10), "what was written is still in memory");
}
