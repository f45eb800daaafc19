//! A file server's partition and a bucket of an S3 server of another implementation: adding, what can be wrong, new data, a store
//! that is away at the start and comes back, removal.

#[allow(dead_code, reason = "the tests of afs-s3 use the rest")]
#[path = "../../../../data/afs-s3/tests/server/mod.rs"]
mod server;

use super::tests::{CONTENT, make_named, partition_on, read, store, volume};
use super::{AttachedDrives, BucketPlace, DriveAnswer, DriveLine, DriveRequest, DrivesError, TierRequest};
use afs_drive::{DriveError, DriveId, MemorySegments};
use afs_env::EnvExt;
use afs_kv::MemoryMedium;
use afs_net::System;
use afs_server::Partitions;
use afs_volume::{VolumeError, VolumeStore};
use afs_wire::ids::PartitionId;
use server::proxy::{Fate, Proxy};
use server::{Moto, python};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// An S3 server behind a proxy, and the state directory of a file server.
struct World {
    system: Arc<System>,
    proxy: Proxy,
    _moto: Moto,
    state: tempfile::TempDir,
    index: MemoryMedium,
    segments: MemorySegments,
}

/// A file server that runs.
struct Running<'a> {
    world: &'a World,
    store: VolumeStore,
    drives: AttachedDrives,
}

impl World {
    fn new() -> Option<Self> {
        let moto = Moto::start(&python()?);
        let world = Self {
            system: System::with_workers(2).unwrap(),
            proxy: Proxy::start(moto.address),
            _moto: moto,
            state: tempfile::tempdir().unwrap(),
            index: MemoryMedium::new(),
            segments: MemorySegments::new(1 << 30),
        };
        world.write_credentials(0o600);
        Some(world)
    }

    fn credentials(&self) -> PathBuf {
        self.state.path().join("credentials")
    }

    fn write_credentials(&self, mode: u32) {
        std::fs::write(self.credentials(), "aws_access_key_id = AKID\naws_secret_access_key = secret\n")
            .unwrap();
        std::fs::set_permissions(self.credentials(), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn place(&self) -> BucketPlace {
        BucketPlace {
            bucket: "s3://andrew/example.org/a".to_owned(),
            endpoint: format!("http://{}", self.proxy.address),
            region: "us-east-1".to_owned(),
            credentials: self.credentials(),
            authority: None,
            allow_clear: false,
        }
    }

    fn start(&self) -> Running<'_> {
        let store = partition_on(&self.system, &self.index, &self.segments);
        let partitions = Partitions::new([(PartitionId(0), store.clone())]);
        let drives = AttachedDrives::open(&self.system.env(), self.state.path(), &partitions, None).unwrap();
        Running { world: self, store, drives }
    }

    fn refuse_all(&self) {
        self.proxy.choose(|_, _| Fate::SlowDown);
    }

    fn serve_all(&self) {
        self.proxy.choose(|_, _| Fate::Served);
    }
}

impl Running<'_> {
    fn ask(&self, request: DriveRequest) -> Result<DriveAnswer, DrivesError> {
        self.world.system.block_on(self.drives.serve(request))
    }

    fn add(&self, place: BucketPlace) -> Result<DriveAnswer, DrivesError> {
        self.ask(DriveRequest::AddBucket { name: "cold".to_owned(), place })
    }

    fn use_drive(&self, name: &str) {
        let (copies, same_host) = (Vec::new(), false);
        self.ask(DriveRequest::Use { name: name.to_owned(), partition: None, copies, same_host }).unwrap();
    }

    fn list(&self) -> Vec<DriveLine> {
        match self.ask(DriveRequest::List) {
            Ok(DriveAnswer::List(lines)) => lines,
            other => panic!("{other:?}"),
        }
    }

    fn problem(&self) -> Option<String> {
        self.list().into_iter().find(|line| line.name == "cold").unwrap().problem
    }
}

#[test]
fn each_thing_that_is_wrong_with_a_bucket_is_said_and_nothing_is_kept() {
    let Some(world) = World::new() else { return };
    let running = world.start();
    let place = || world.place();
    let refused = |place: BucketPlace, expected: &str| {
        let error = running.add(place).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(running.list().len(), 1, "{expected}: nothing is kept");
    };
    refused(BucketPlace { bucket: "andrew/a".into(), ..place() }, "s3://BUCKET/PREFIX");
    refused(BucketPlace { endpoint: "s3.example.org".into(), ..place() }, "https://HOST[:PORT]");
    refused(BucketPlace { endpoint: "http://192.0.2.1".into(), ..place() }, "http is not encrypted");
    refused(BucketPlace { credentials: "/nowhere/c".into(), ..place() }, "there is no file /nowhere/c");
    refused(
        BucketPlace { authority: Some("/nowhere/ca".into()), endpoint: "https://a".into(), ..place() },
        "/nowhere/ca",
    );
    world.write_credentials(0o644);
    refused(place(), "mode 0644");
    world.write_credentials(0o600);
    refused(BucketPlace { bucket: "s3://elsewhere/a".into(), ..place() }, "NoSuchBucket");
    world.proxy.choose(|_, _| Fate::Forbidden);
    refused(place(), "refuses the credentials: 403 AccessDenied");
    world.proxy.choose(|_, line| if line.starts_with("PUT") { Fate::Unconditional } else { Fate::Served });
    refused(place(), "overwrites objects in spite of If-None-Match");
    world.serve_all();
    let away = BucketPlace { endpoint: "http://127.0.0.1:1".into(), ..place() };
    refused(away, "cannot get object owner: no complete reply");
    // Nothing remained of all these: it can be added, and then by nobody else.
    running.add(place()).unwrap();
    assert!(running.add(place()).unwrap_err().to_string().contains("there is one of this name"));
    let other = World { state: tempfile::tempdir().unwrap(), ..World::new().unwrap() };
    let place = BucketPlace { credentials: world.credentials(), ..world.place() };
    let error = other.start().add(place).unwrap_err().to_string();
    assert!(error.contains("another file server has it"), "{error}");
    assert_eq!(running.problem(), None);
}

#[test]
fn what_cannot_be_taken_back_is_completed_by_another_attempt() {
    let Some(world) = World::new() else { return };
    let running = world.start();
    world.proxy.choose(|_, line| if line.starts_with("DELETE") { Fate::Forbidden } else { Fate::Served });
    let error = running.add(world.place()).unwrap_err().to_string();
    assert!(error.contains("delete object") && error.contains("403"), "{error}");
    assert!(running.problem().unwrap().contains("not joined"));
    world.serve_all();
    running.add(world.place()).unwrap();
    assert_eq!(running.problem(), None);
}

#[test]
fn a_bucket_is_added_used_away_at_a_start_checked_and_removed() {
    let Some(world) = World::new() else { return };
    let running = world.start();
    let files = volume(&world.system, &running.store);
    running.add(world.place()).unwrap();
    let [near, far] =
        [&b"near"[..], b"far"].map(|name| world.system.block_on(make_named(&files, name)).unwrap());
    world.system.block_on(store(&files, near, CONTENT)).unwrap();
    running.use_drive("cold");
    world.system.block_on(store(&files, far, CONTENT)).unwrap();
    assert!(running.store.has_chunks_on(DriveId(1)).unwrap());
    let line = running.list().into_iter().find(|line| line.name == "cold").unwrap();
    assert_eq!((line.kind.as_str(), line.free, line.problem), ("bucket", None, None));
    assert!(line.at.starts_with("s3://andrew/example.org/a of http://127.0.0.1:"), "{}", line.at);
    drop((files, running));

    // The store is away when the server starts: its files alone cannot be read, and those of the disk are not held up.
    world.refuse_all();
    let running = world.start();
    let files = running.store.volume(super::tests::VOLUME).unwrap();
    let read = |fid| world.system.block_on(read(&files, fid));
    assert!(read(near).unwrap() == CONTENT);
    for _ in 0..2 {
        let error = read(far).unwrap_err();
        assert!(matches!(&error, VolumeError::Drive(DriveError::Away { .. })), "{error}");
        assert!(error.to_string().contains("drive cold cannot be reached"), "{error}");
    }
    assert!(world.system.block_on(store(&files, near, CONTENT)).is_err(), "new data go there");
    assert!(running.problem().unwrap().contains("503 SlowDown"));
    world.serve_all();
    assert!(read(far).unwrap() == CONTENT, "back without a start");
    world.system.block_on(store(&files, near, CONTENT)).unwrap();
    let Ok(DriveAnswer::Checked(checked)) = running.ask(DriveRequest::Check { name: "cold".into() }) else {
        panic!("no check")
    };
    assert_eq!((checked.bytes, checked.bad), (2 * CONTENT.len() as u64, 0));

    let remove = || running.ask(DriveRequest::Remove { name: "cold".into() });
    assert!(remove().is_err(), "new data go there");
    running.use_drive("local");
    assert!(remove().is_err(), "files are there");
    for fid in [near, far] {
        world.system.block_on(store(&files, fid, CONTENT)).unwrap();
    }
    while world.system.block_on(running.store.background_step()).unwrap() {}
    let Ok(DriveAnswer::Removed { left: None }) = remove() else { panic!("it remains") };
    // Nothing of it is left: another file server may have the prefix.
    let other = World { state: tempfile::tempdir().unwrap(), ..World::new().unwrap() };
    let place = BucketPlace { credentials: world.credentials(), ..world.place() };
    other.start().add(place).unwrap();
    assert!(read(far).unwrap() == CONTENT);
    drop(running);
    world.system.shutdown(Duration::from_secs(10));
}

#[test]
fn large_files_of_a_volume_go_to_a_bucket_and_come_back_unchanged() {
    let Some(world) = World::new() else { return };
    let running = world.start();
    let files = volume(&world.system, &running.store);
    running.add(world.place()).unwrap();
    let [large, small] =
        [&b"large"[..], b"small"].map(|name| world.system.block_on(make_named(&files, name)).unwrap());
    world.system.block_on(store(&files, large, CONTENT)).unwrap();
    world.system.block_on(store(&files, small, &CONTENT[..300_000])).unwrap();
    let tier = |drive: &str, age, length| {
        let order = Some(TierRequest { drive: drive.to_owned(), age, length });
        running.ask(DriveRequest::Tier { volume: "root.cell".to_owned(), order })
    };
    let env = world.system.env();
    let round = || loop {
        let how_far = running.ask(DriveRequest::Tier { volume: "root.cell".to_owned(), order: None });
        let Ok(DriveAnswer::Tier(line)) = how_far else { panic!("{how_far:?}") };
        match line.rounds {
            0 => world.system.block_on(env.sleep(Duration::from_millis(20))),
            _ => break line,
        }
    };
    let how_far = || running.ask(DriveRequest::Tier { volume: "root.cell".to_owned(), order: None });
    assert!(how_far().is_err() && tier("nowhere", 0, 0).is_err());
    let read = |fid| world.system.block_on(read(&files, fid));
    let before = files.vnode(large.vnode).unwrap();
    // Nothing is as old as a year.
    tier("cold", 365 * 86_400, 0).unwrap();
    assert_eq!((round().files, running.store.has_chunks_on(DriveId(1)).unwrap()), (0, false));
    tier("cold", 0, 1 << 20).unwrap();
    let line = round();
    assert_eq!((line.files, line.bytes, line.drive.as_str()), (1, CONTENT.len() as u64, "cold"));
    assert!(
        running
            .ask(DriveRequest::Remove { name: "cold".into() })
            .unwrap_err()
            .to_string()
            .contains("vos tier")
    );
    assert!(files.vnode(large.vnode).unwrap() == before, "data version and times stay");
    assert!(read(large).unwrap() == CONTENT);
    world.proxy.choose(|_, _| Fate::Forbidden);
    assert!(read(small).unwrap() == CONTENT[..300_000], "it is where it was");
    assert!(read(large).is_err());
    world.serve_all();
    tier("local", 0, 0).unwrap();
    assert_eq!(round().files, 1);
    while world.system.block_on(running.store.background_step()).unwrap() {}
    assert!(!running.store.has_chunks_on(DriveId(1)).unwrap());
    running.ask(DriveRequest::EndTier { volume: "root.cell".into() }).unwrap();
    assert!(how_far().is_err() && read(large).unwrap() == CONTENT);
    running.ask(DriveRequest::Remove { name: "cold".into() }).unwrap();
}
