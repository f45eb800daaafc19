//! A drive on an S3 server of another implementation, directly and through a proxy that makes faults.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use crate::server;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use afs_bucket::{Bucket, BucketDrive, Config, OwnerId};
use afs_drive::{ChunkId, ChunkRef, Drive, DriveError, LiveChunks};
use afs_net::System;
use afs_s3::{ConfigError, S3Bucket, S3Config};
use bytes::Bytes;
use server::lies::{Lie, TAKEN};
use server::proxy::{Fate, Proxy};
use server::{Moto, python};

/// Waits on this thread for work that others do.
fn wait<T>(work: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut work: Pin<&mut _> = pin!(work);
    loop {
        if let Poll::Ready(value) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        std::thread::park();
    }
}

struct Live(Vec<ChunkRef>);

impl LiveChunks for Live {
    fn live_between(&self, first: ChunkId, last: ChunkId) -> Result<Vec<ChunkRef>, DriveError> {
        Ok(self.0.iter().copied().filter(|chunk| (first..=last).contains(&chunk.id)).collect())
    }
}

fn data(seed: usize, len: usize) -> Bytes {
    (0..len).map(|at| ((at * 31 + seed * 7) % 251) as u8).collect::<Vec<_>>().into()
}

/// A server, a proxy before it, and a file of credentials.
struct Store {
    proxy: Proxy,
    moto: Moto,
    directory: tempfile::TempDir,
    system: Arc<System>,
}

const OWNER: OwnerId = OwnerId([5; 16]);

impl Store {
    fn start() -> Option<Self> {
        let moto = Moto::start(&python()?);
        let directory = tempfile::tempdir().unwrap();
        let store = Self {
            proxy: Proxy::start(moto.address),
            moto,
            directory,
            system: System::with_workers(2).unwrap(),
        };
        store.write_credentials();
        Some(store)
    }

    fn credentials(&self) -> PathBuf {
        self.directory.path().join("credentials")
    }

    fn write_credentials(&self) {
        let path = self.credentials();
        std::fs::write(&path, "aws_access_key_id = AKID\naws_secret_access_key = secret\n").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn config(&self, prefix: &str) -> S3Config {
        S3Config {
            address: format!("s3://andrew/{prefix}").parse().unwrap(),
            endpoint: format!("http://{}", self.proxy.address).parse().unwrap(),
            region: "us-east-1".into(),
            credentials: self.credentials(),
            authority: None,
            allow_clear: false,
        }
    }

    fn bucket(&self, prefix: &str) -> Arc<S3Bucket> {
        Arc::new(S3Bucket::open(&self.config(prefix)).unwrap())
    }

    /// The keys of a bucket, asked for without the proxy and its faults.
    fn keys(&self, prefix: &str) -> Vec<String> {
        let endpoint = format!("http://{}", self.moto.address).parse().unwrap();
        let bucket = S3Bucket::open(&S3Config { endpoint, ..self.config(prefix) }).unwrap();
        let page = wait(bucket.list("", None)).unwrap();
        page.objects.into_iter().map(|listed| listed.key).collect()
    }

    fn drive(&self, prefix: &str) -> BucketDrive {
        let config = Config { pack_bytes: 300_000, ..Config::default() };
        wait(BucketDrive::create(self.bucket(prefix), OWNER, self.system.clone(), config)).unwrap()
    }
}

/// Writes, syncs, reads, discards, and sweeps in a second run.
fn exercise(store: &Store, prefix: &str) {
    let drive = store.drive(prefix);
    let lengths = [1, 20_000, 65_536, 200_001, 150_000, 20_000, 400_000];
    let write = |(seed, len): (usize, &usize)| wait(drive.write(data(seed, *len))).unwrap();
    let chunks: Vec<_> = lengths.iter().enumerate().map(write).collect();
    wait(drive.sync(&chunks)).unwrap();
    for (seed, chunk) in chunks.iter().enumerate() {
        let expected = data(seed, chunk.len as usize);
        for range in [0..chunk.len, chunk.len / 3..chunk.len / 2] {
            let part = expected.slice(range.start as usize..range.end as usize);
            assert_eq!(wait(drive.read(*chunk, range)).unwrap(), part);
        }
    }
    wait(drive.discard(vec![chunks[6]])).unwrap();
    assert!(wait(drive.read(chunks[6], 0..1)).is_err());
    drop(drive);
    let drive = store.drive(prefix);
    let live = vec![chunks[1], chunks[3]];
    let report = wait(drive.sweep(Arc::new(Live(live.clone())))).unwrap();
    assert_eq!((report.live, report.missing.len()), (2, 0));
    assert!(report.removed > 0, "{report:?}");
    assert_eq!(wait(drive.read(chunks[3], 0..200_001)).unwrap(), data(3, 200_001));
    wait(drive.discard(live)).unwrap();
    assert_eq!(store.keys(prefix), ["owner", "runs/00000002"]);
}

#[test]
fn a_drive_on_an_s3_server() {
    let Some(store) = Store::start() else { return };
    exercise(&store, "calm");
    through_a_bad_network(&store);
    a_wrong_byte_is_fetched_again(&store);
    refused_credentials_are_named(&store);
    another_owner_is_refused(&store);
    requests_are_as_few_as_they_should_be(&store);
    clear_requests_stay_on_this_machine(&store);
    lies_about_objects_give_no_wrong_byte(&store);
    lies_about_lists_lose_nothing(&store);
}

fn through_a_bad_network(store: &Store) {
    store.proxy.choose(|number, _| match number % 11 {
        2 => Fate::SlowDown,
        5 => Fate::Cut,
        7 => Fate::Lost,
        9 => Fate::Late,
        _ => Fate::Served,
    });
    exercise(store, "faults/drive");
    assert!(store.proxy.count() > 20, "{} requests", store.proxy.count());
    store.proxy.choose(|_, _| Fate::Served);
}

fn a_wrong_byte_is_fetched_again(store: &Store) {
    let drive = store.drive("wrong");
    let chunk = wait(drive.write(data(1, 200_000))).unwrap();
    wait(drive.sync(&[chunk])).unwrap();
    store.proxy.choose(|number, _| if number == 0 { Fate::Wrong } else { Fate::Served });
    assert_eq!(wait(drive.read(chunk, 0..200_000)).unwrap(), data(1, 200_000));
    assert_eq!(store.proxy.count(), 2);
    store.proxy.choose(|_, _| Fate::Wrong);
    assert!(matches!(wait(drive.read(chunk, 0..200_000)), Err(DriveError::Damaged { .. })));
    store.proxy.choose(|_, _| Fate::Served);
}

fn refused_credentials_are_named(store: &Store) {
    let drive = store.drive("expired");
    let chunk = wait(drive.write(data(1, 1000))).unwrap();
    for (fate, code) in [(Fate::Expired, "ExpiredToken"), (Fate::Forbidden, "AccessDenied")] {
        store.proxy.choose(move |_, line| if line.starts_with("PUT") { fate } else { Fate::Served });
        let error = wait(drive.sync(&[chunk])).unwrap_err().to_string();
        assert!(error.contains("packs/") && error.contains(code), "{error}");
    }
    store.proxy.choose(|_, _| Fate::Served);
    wait(drive.sync(&[chunk])).unwrap();
    let bucket = store.bucket("expired");
    std::fs::remove_file(store.credentials()).unwrap();
    assert!(matches!(S3Bucket::open(&store.config("expired")), Err(ConfigError::Credentials(_))));
    let opened = wait(BucketDrive::open(bucket, OWNER, store.system.clone(), Config::default()));
    let error = opened.err().unwrap().to_string();
    assert!(error.contains("there is no file"), "{error}");
    store.write_credentials();
}

fn another_owner_is_refused(store: &Store) {
    drop(store.drive("owned"));
    let open = |owner| {
        wait(BucketDrive::open(store.bucket("owned"), owner, store.system.clone(), Config::default()))
    };
    assert!(open(OWNER).is_ok());
    assert!(open(OwnerId([6; 16])).err().unwrap().to_string().contains("belongs to the store"));
}

/// Of what the decision says about costs: a PUT for a full pack, and one GET for each chunk that is read.
fn requests_are_as_few_as_they_should_be(store: &Store) {
    let drive = store.drive("costs");
    wait(drive.write(data(0, 1))).unwrap();
    wait(drive.sync(&[])).unwrap();
    store.proxy.choose(|_, _| Fate::Served);
    let chunks: Vec<_> = (0..10).map(|n| wait(drive.write(data(n, 140_000))).unwrap()).collect();
    wait(drive.sync(&chunks)).unwrap();
    assert_eq!(store.proxy.count(), 6, "five packs, and a look whether this run is the latest");
    for (n, chunk) in chunks.iter().enumerate() {
        assert_eq!(wait(drive.read(*chunk, 0..140_000)).unwrap(), data(n, 140_000));
    }
    assert_eq!(store.proxy.count(), 16);
}

fn clear_requests_stay_on_this_machine(store: &Store) {
    let remote = S3Config { endpoint: "http://192.0.2.1:9000".parse().unwrap(), ..store.config("clear") };
    let error = S3Bucket::open(&remote).err().unwrap();
    assert!(matches!(error, ConfigError::Clear(_)));
    assert!(S3Bucket::open(&S3Config { allow_clear: true, ..remote }).is_ok());
}

/// A drive with two packs, of which each has a chunk, and the chunks.
fn two_packs(store: &Store, prefix: &str) -> (BucketDrive, Vec<ChunkRef>) {
    let drive = store.drive(prefix);
    let chunks: Vec<_> = (0..2).map(|n| wait(drive.write(data(n, 200_000))).unwrap()).collect();
    wait(drive.sync(&chunks)).unwrap();
    (drive, chunks)
}

/// Has the store lie to the first two requests that begin so. Returns the number of lies told so far.
fn lying(store: &Store, lie: Lie, begin: &'static str) -> Arc<AtomicUsize> {
    let told = Arc::<AtomicUsize>::default();
    let tells = told.clone();
    store.proxy.choose(move |_, line| {
        let is_lie = line.starts_with(begin) && tells.fetch_add(1, Ordering::SeqCst) < 2;
        if is_lie { Fate::Lie(lie) } else { Fate::Served }
    });
    told
}

fn lies_about_objects_give_no_wrong_byte(store: &Store) {
    for (number, lie) in Lie::ALL.into_iter().enumerate() {
        let (drive, chunks) = two_packs(store, &format!("lies/{number}"));
        let told = lying(store, lie, "GET /andrew/lies");
        for _ in 0..2 {
            for (n, chunk) in chunks.iter().enumerate() {
                if let Ok(read) = wait(drive.read(*chunk, 0..chunk.len)) {
                    assert!(read == data(n, 200_000), "{lie:?} was believed");
                }
            }
        }
        assert!(told.load(Ordering::SeqCst) >= 2, "{lie:?} was not told");
        store.proxy.choose(|_, _| Fate::Served);
        for (n, chunk) in chunks.iter().enumerate() {
            assert_eq!(wait(drive.read(*chunk, 0..chunk.len)).unwrap(), data(n, 200_000));
        }
    }
    // A body has at most 8 MiB; a little more is on its way.
    let taken = TAKEN.load(Ordering::SeqCst);
    assert!((1..=2 * (16 << 20)).contains(&taken), "{taken} bytes were taken of two replies");
}

fn lies_about_lists_lose_nothing(store: &Store) {
    for (number, lie) in [Lie::Shorter, Lie::Longer, Lie::Endless, Lie::ErrorBody].into_iter().enumerate() {
        let prefix = format!("lists/{number}");
        let (drive, chunks) = two_packs(store, &prefix);
        drop(drive);
        let drive = store.drive(&prefix);
        let told = lying(store, lie, "GET /andrew?list-type=2");
        for _ in 0..3 {
            if let Ok(report) = wait(drive.sweep(Arc::new(Live(chunks.clone())))) {
                assert_eq!((report.live, report.missing.len()), (2, 0), "{lie:?} was believed");
            }
        }
        assert!(told.load(Ordering::SeqCst) >= 2, "{lie:?} was not told");
        store.proxy.choose(|_, _| Fate::Served);
        for (n, chunk) in chunks.iter().enumerate() {
            assert_eq!(wait(drive.read(*chunk, 0..chunk.len)).unwrap(), data(n, 200_000));
        }
    }
}
