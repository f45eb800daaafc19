//! What every drive does, on packs in memory.

use afs_drive::MAX_CHUNK_LEN;

use super::*;

#[test]
fn chunks_are_written_read_discarded_and_swept() {
    let bucket = MemoryBucket::default();
    let drive = create(&bucket);
    let lengths = [1, 15, 4096, 65536, 65537, 200_000, 600_000, 600_000, MAX_CHUNK_LEN];
    let chunks: Vec<_> =
        lengths.iter().enumerate().map(|(n, len)| now(drive.write(data(n as u8, *len))).unwrap()).collect();
    assert!(chunks.is_sorted(), "chunks are ordered by birth");
    let check = || {
        for (n, chunk) in chunks.iter().enumerate() {
            let expected = data(n as u8, lengths[n]);
            assert_eq!(chunk.crc, crc32c::crc32c(&expected));
            assert_eq!(now(drive.read(*chunk, whole(*chunk))).unwrap(), expected);
            for range in [0..0, 0..1, chunk.len / 3..chunk.len / 2, chunk.len - 1..chunk.len] {
                let part = expected.slice(range.start as usize..range.end as usize);
                assert_eq!(now(drive.read(*chunk, range)).unwrap(), part);
            }
        }
    };
    check();
    now(drive.sync(&[])).unwrap();
    check();
    assert!(matches!(now(drive.write(Bytes::new())), Err(DriveError::Length { len: 0 })));
    assert!(matches!(now(drive.write(data(0, MAX_CHUNK_LEN + 1))), Err(DriveError::Length { .. })));
    assert!(matches!(now(drive.read(chunks[0], 0..2)), Err(DriveError::Length { .. })));
    // A discarded chunk cannot be read, and can be discarded again.
    for _ in 0..2 {
        now(drive.discard(vec![chunks[2]])).unwrap();
    }
    assert!(
        matches!(now(drive.read(chunks[2], 0..1)), Err(DriveError::Damaged { chunk }) if chunk == chunks[2].id)
    );
    assert_eq!(now(drive.read(chunks[3], 0..1)).unwrap(), data(3, 1));
    drop(drive);
    the_next_run_sweeps(&bucket, &chunks);
}

fn the_next_run_sweeps(bucket: &MemoryBucket, chunks: &[ChunkRef]) {
    let drive = create(bucket);
    drive.continue_after(chunks[8].id);
    let newer = now(drive.write(data(9, 10))).unwrap();
    assert!(newer > *chunks.last().unwrap());
    let live = vec![chunks[0], chunks[5], chunks[6]];
    let report = now(drive.sweep(Arc::new(Live(live.clone())))).unwrap();
    assert_eq!((report.live, report.missing.len(), report.segments, report.removed), (3, 0, 3, 2));
    for chunk in &live {
        assert!(now(drive.read(*chunk, whole(*chunk))).is_ok());
    }
    assert!(now(drive.read(chunks[7], 0..1)).is_err());
    assert_eq!(now(drive.read(newer, 0..10)).unwrap(), data(9, 10));
    // With its last live chunk a pack is deleted.
    assert_eq!(packs_in(bucket).len(), 1);
    for n in [1, 2] {
        for _ in 0..2 {
            now(drive.discard(vec![live[n]])).unwrap();
        }
        assert_eq!(packs_in(bucket).len(), 1);
    }
    now(drive.discard(live)).unwrap();
    assert!(packs_in(bucket).is_empty());
}

#[test]
fn a_chunk_whose_name_nobody_takes_is_discarded() {
    let bucket = MemoryBucket::default();
    let drive = create(&bucket);
    drop(drive.write(data(1, 100_000)));
    now(drive.sync(&[])).unwrap();
    assert!(packs_in(&bucket).is_empty(), "a pack without a live chunk is not put");
    let kept = now(drive.write(data(2, 100))).unwrap();
    drop(drive.write(data(1, 100_000)));
    now(drive.sync(&[])).unwrap();
    assert_eq!(packs_in(&bucket).len(), 1);
    now(drive.discard(vec![kept])).unwrap();
    assert!(packs_in(&bucket).is_empty());
}

#[test]
fn names_go_on_behind_the_last_that_is_known() {
    let bucket = MemoryBucket::default();
    let drive = create(&bucket);
    drive.continue_after(ChunkId::from_parts(7 << 32 | 5, 4096));
    let first = now(drive.write(data(1, 100))).unwrap();
    assert_eq!(first.id, ChunkId::from_parts(8 << 32, 24));
    let report = now(drive.sweep(Arc::new(Live(Vec::new())))).unwrap();
    assert_eq!(report.removed, 0, "chunks of this run are not swept");
    now(drive.sync(&[])).unwrap();
    assert_eq!(
        bucket.objects().into_iter().map(|(key, _)| key).collect::<Vec<_>>(),
        ["owner", "packs/0000000800000000", "runs/00000008"]
    );
}

#[test]
fn packs_are_full_and_in_the_format() {
    let bucket = MemoryBucket::default();
    let config = Config::default();
    let drive = now(BucketDrive::create(Arc::new(bucket.clone()), OWNER, Parts::inline(), config)).unwrap();
    let chunks: Vec<_> = (0..16).map(|n| now(drive.write(data(n, 1 << 20))).unwrap()).collect();
    now(drive.sync(&[])).unwrap();
    let packs = packs_in(&bucket);
    assert_eq!(packs.len(), 2, "128 packs for a GiB");
    let decoded = packs.iter().map(|key| crate::pack::decode(&bucket.object(key).unwrap()).unwrap().1);
    assert_eq!(decoded.flatten().collect::<Vec<_>>(), chunks);
    let puts = bucket.objects().len();
    now(drive.sync(&[])).unwrap();
    assert_eq!(bucket.objects().len(), puts, "nothing is put when there is nothing new");
}
