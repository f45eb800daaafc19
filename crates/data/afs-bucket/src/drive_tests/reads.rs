//! Tests of reads: verification, errors, and how many requests they make.

use super::*;

#[test]
fn damage_is_noticed_and_a_missing_object_is_named() {
    let bucket = MemoryBucket::default();
    let drive = create(&bucket);
    let chunk = now(drive.write(data(1, 200_000))).unwrap();
    now(drive.sync(&[])).unwrap();
    let key = packs_in(&bucket).remove(0);
    let object = bucket.object(&key).unwrap();
    let mut damaged = object.to_vec();
    damaged[150_000] ^= 1;
    bucket.replace(&key, Some(damaged.into()));
    let error = now(drive.read(chunk, 0..1000)).unwrap_err();
    assert_eq!(error.to_string(), format!("chunk {} is damaged", chunk.id));
    bucket.replace(&key, None);
    let error = now(drive.read(chunk, whole(chunk))).unwrap_err();
    assert!(
        matches!(&error, DriveError::Unreadable { error, .. } if error.kind() == std::io::ErrorKind::NotFound)
    );
    assert!(error.to_string().contains(&format!("cannot get object {key}")), "{error}");
    bucket.replace(&key, Some(object));
    assert_eq!(now(drive.read(chunk, whole(chunk))).unwrap(), data(1, 200_000));
    // No reference but the chunk's own gets its bytes.
    for wrong in
        [ChunkRef { crc: 1, ..chunk }, ChunkRef { len: 5, ..chunk }, ChunkRef { id: ChunkId::MAX, ..chunk }]
    {
        assert!(now(drive.read(wrong, 0..1)).is_err());
    }
}

#[test]
fn small_chunks_that_were_written_together_are_fetched_together() {
    let bucket = Counting::default();
    let drive = now(BucketDrive::create(Arc::new(bucket.clone()), OWNER, Parts::inline(), small())).unwrap();
    let chunks: Vec<_> = (0..40).map(|n| now(drive.write(data(n, 20_000))).unwrap()).collect();
    now(drive.sync(&[])).unwrap();
    let before = bucket.gets();
    for (n, chunk) in chunks.iter().enumerate() {
        assert_eq!(now(drive.read(*chunk, whole(*chunk))).unwrap(), data(n as u8, 20_000));
    }
    assert_eq!(bucket.gets() - before, 4, "13 chunks of 20,000 bytes are in 256 KiB");
}

#[test]
fn a_chunk_that_is_read_in_parts_is_fetched_once() {
    let bucket = Counting::default();
    let drive = now(BucketDrive::create(Arc::new(bucket.clone()), OWNER, Parts::inline(), small())).unwrap();
    let chunk = now(drive.write(data(1, 1 << 20))).unwrap();
    now(drive.sync(&[])).unwrap();
    let before = bucket.gets();
    for part in 0..16 {
        let range = part * 65536..(part + 1) * 65536;
        let expected = data(1, 1 << 20).slice(range.start as usize..range.end as usize);
        assert_eq!(now(drive.read(chunk, range)).unwrap(), expected);
    }
    assert_eq!(bucket.gets() - before, 1);
}

#[test]
fn a_discarded_chunk_is_not_in_the_cache() {
    let bucket = MemoryBucket::default();
    let drive = create(&bucket);
    let chunk = now(drive.write(data(1, 1000))).unwrap();
    now(drive.sync(&[])).unwrap();
    assert_eq!(now(drive.read(chunk, 0..10)).unwrap(), data(1, 10));
    now(drive.discard(vec![chunk])).unwrap();
    assert!(now(drive.read(chunk, 0..10)).is_err());
}
