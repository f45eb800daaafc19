//! Addresses of chunks: which have one, and that its range is the chunk and nothing else.

use std::time::{SystemTime, UNIX_EPOCH};

use afs_drive::Addressed;

use super::*;

/// A store whose addresses say what they permit.
#[derive(Clone, Default)]
struct Signing(MemoryBucket);

impl Bucket for Signing {
    fn put_new(&self, key: &str, body: Vec<Bytes>) -> Reply<()> {
        self.0.put_new(key, body)
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

    fn signed_address(&self, key: &str, range: Range<u64>, at: SystemTime, seconds: u32) -> Reply<String> {
        let address = format!("{key} {range:?} {:?} {seconds}", at.duration_since(UNIX_EPOCH).unwrap());
        Box::pin(async { Ok(address) })
    }
}

#[test]
fn a_chunk_has_an_address_while_its_pack_is_in_the_store() {
    let bucket = Signing::default();
    let drive = now(BucketDrive::create(Arc::new(bucket.clone()), OWNER, Parts::inline(), small())).unwrap();
    let chunks: Vec<_> = (0..3).map(|n| now(drive.write(data(n, 1001))).unwrap()).collect();
    assert!(!drive.has(chunks[0]) && now(drive.address(chunks[0], 60)).is_none(), "it is in memory");
    now(drive.sync(&[])).unwrap();
    for (n, chunk) in chunks.iter().enumerate() {
        assert!(drive.has(*chunk));
        let told = now(drive.address(*chunk, 60)).unwrap();
        let (key, rest) = told.address.split_once(' ').unwrap();
        assert!(rest.starts_with(&format!("{:?} ", told.range)) && rest.ends_with(" 60"), "{rest}");
        let object = bucket.0.object(key).unwrap();
        assert!(object[told.range.start as usize..told.range.end as usize] == data(n as u8, 1001));
    }
    now(drive.discard(vec![chunks[0]])).unwrap();
    assert!(!drive.has(chunks[0]) && now(drive.address(chunks[0], 60)).is_none(), "it is dead");
    for wrong in [ChunkRef { len: 0, ..chunks[1] }, ChunkRef { len: u32::MAX, ..chunks[1] }] {
        assert!(!drive.has(wrong) && now(drive.address(wrong, 60)).is_none());
    }
    let no_place = ChunkRef { id: ChunkId::from_parts(1, u64::MAX), ..chunks[1] };
    assert!(now(drive.address(no_place, 60)).is_none());
}

#[test]
fn a_store_that_signs_nothing_gives_no_address() {
    let drive = create(&MemoryBucket::default());
    let chunk = now(drive.write(data(1, 1000))).unwrap();
    now(drive.sync(&[])).unwrap();
    assert!(drive.has(chunk) && now(drive.address(chunk, 60)).is_none());
}
