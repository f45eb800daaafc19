//! Tests of drives that are attached before their store was reached, of stores that are away, and of the end of a drive.

use std::time::Duration;

use super::faults::{ALWAYS, with_drive};
use super::faulty_bucket::Rates;
use super::*;

fn attached(bucket: &MemoryBucket, admission: Admission) -> BucketDrive {
    BucketDrive::attached("far", Arc::new(bucket.clone()), admission, Parts::inline(), small())
}

#[test]
fn a_drive_is_attached_without_a_request_and_looked_at_before_the_first_write() {
    let bucket = MemoryBucket::default();
    let missing = attached(&bucket, Admission::Check(OWNER));
    let error = now(missing.write(data(1, 10))).unwrap_err().to_string();
    assert!(error.contains("object owner") && now(missing.look()).is_err(), "{error}");
    assert_eq!(bucket.objects(), [], "nothing is made where a drive should be");
    let drive = attached(&bucket, Admission::Make(OWNER));
    assert!(now(drive.look()).is_ok() && bucket.objects().is_empty());
    let chunk = now(drive.write(data(1, 10))).unwrap();
    now(drive.sync(&[])).unwrap();
    let other = attached(&bucket, Admission::Make(OwnerId([7; 16])));
    for error in [
        now(other.write(data(2, 10))).map(drop),
        now(other.look()),
        now(other.begin_run()),
        now(other.withdraw()),
    ] {
        assert!(error.unwrap_err().to_string().contains("belongs to the store"));
    }
    assert!(now(other.sweep(Arc::new(Live(Vec::new())))).is_err());
    assert_eq!(now(attached(&bucket, Admission::Check(OWNER)).read(chunk, 0..10)).unwrap(), data(1, 10));
}

#[test]
fn a_drive_that_is_withdrawn_leaves_nothing_and_its_prefix_to_others() {
    let bucket = MemoryBucket::default();
    let drive = attached(&bucket, Admission::Make(OWNER));
    for n in 0..20 {
        now(drive.write(data(n, 900_000))).unwrap();
        now(drive.sync(&[])).unwrap();
    }
    assert_eq!(packs_in(&bucket).len(), 20);
    bucket.replace("elsewhere", Some(Bytes::from_static(b"of others")));
    now(drive.withdraw()).unwrap();
    assert_eq!(bucket.objects(), [("elsewhere".to_owned(), 9)]);
    now(attached(&bucket, Admission::Make(OwnerId([7; 16]))).begin_run()).unwrap();
}

#[test]
fn a_run_that_was_ended_withdraws_nothing() {
    let bucket = MemoryBucket::default();
    let first = attached(&bucket, Admission::Make(OWNER));
    now(first.begin_run()).unwrap();
    now(attached(&bucket, Admission::Check(OWNER)).begin_run()).unwrap();
    let before = bucket.objects();
    let error = now(first.withdraw()).unwrap_err().to_string();
    assert!(error.contains("another server has opened this drive"), "{error}");
    assert_eq!(bucket.objects(), before);
}

#[test]
fn a_store_that_is_away_is_told_from_a_lost_chunk_and_is_asked_once_until_it_is_back() {
    with_drive(11, |drive, bucket, _, env| async move {
        let chunk = drive.write(data(1, 300_000)).await.unwrap();
        drive.sync(&[]).await.unwrap();
        bucket.set(Rates { silent: ALWAYS, ..Rates::default() });
        let mut waits = Vec::new();
        for _ in 0..3 {
            let began = env.now();
            let error = drive.read(chunk, 0..10).await.unwrap_err();
            assert!(matches!(&error, DriveError::Away { .. }), "{error}");
            waits.push(env.now().saturating_since(began));
        }
        assert!(waits[0] < Duration::from_secs(81), "{waits:?}");
        assert!(waits[1..].iter().all(|wait| *wait < Duration::from_secs(21)), "one attempt: {waits:?}");
        bucket.set(Rates::default());
        assert_eq!(drive.read(chunk, 0..10).await.unwrap(), data(1, 10));
        // Back to several attempts.
        for _ in 0..20 {
            bucket.set(Rates { busy: ALWAYS / 2, ..Rates::default() });
            assert_eq!(drive.read(chunk, whole(chunk)).await.unwrap(), data(1, 300_000));
        }
    });
}
