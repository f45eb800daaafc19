//! Keys of a drive over TLS on real sockets: changed at the owner's request and by age, in use, over starts of both ends.

use super::registry::DriveKind;
use super::tests::{CONTENT, VOLUME, daemon, make, partition_on, read, store, use_in, volume};
use super::{AttachedDrives, DriveAnswer, DriveDaemon, DriveKeyLine, DriveRequest, Registry};
use afs_drive::MemorySegments;
use afs_kv::MemoryMedium;
use afs_net::System;
use afs_server::Partitions;
use afs_volume::Volume;
use afs_wire::ids::{Fid, PartitionId};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const STOP: Duration = Duration::from_secs(10);

/// A file server with a drive, which takes its new data.
struct Joined {
    here: TempDir,
    there: TempDir,
    index: MemoryMedium,
    segments: MemorySegments,
    server: Option<Server>,
    far: Option<(Arc<System>, DriveDaemon)>,
    address: SocketAddr,
}

/// One that was started.
struct Server {
    drives: AttachedDrives,
    volume: Arc<Volume>,
    system: Arc<System>,
}

impl Joined {
    fn new() -> Self {
        let [here, there] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let far = System::with_workers(1).unwrap();
        let (index, segments) = (MemoryMedium::new(), MemorySegments::new(1 << 30));
        let drive = daemon(&far, there.path(), SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let (address, join_key) = (drive.at(), drive.join_key().unwrap().to_text().to_string());
        let far = Some((far, drive));
        let mut joined = Self { here, there, index, segments, server: None, far, address };
        joined.start(None);
        joined.ask(DriveRequest::Add { name: "big".to_owned(), address, join_key });
        joined.ask(use_in("big", None));
        joined
    }

    /// The file server begins with what its registry says.
    fn start(&mut self, key_age: Option<Duration>) {
        let system = System::with_workers(2).unwrap();
        let partition = partition_on(&system, &self.index, &self.segments);
        let volume = partition.volume(VOLUME).unwrap_or_else(|| volume(&system, &partition));
        let partitions = Partitions::new([(PartitionId(0), partition)]);
        let drives = AttachedDrives::open(&system.env(), self.here.path(), &partitions, key_age).unwrap();
        self.server = Some(Server { drives, volume, system });
    }

    fn stop(&mut self) {
        let Some(Server { drives, volume, system }) = self.server.take() else { return };
        drop((drives, volume));
        system.shutdown(STOP);
    }

    fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    /// Stores, and reads what was stored.
    fn use_it(&self, fid: Fid) {
        let Server { system, volume, .. } = self.server();
        system.block_on(store(volume, fid, CONTENT)).unwrap();
        assert!(system.block_on(read(volume, fid)).unwrap() == CONTENT);
    }

    fn make(&self) -> Fid {
        self.server().system.block_on(make(&self.server().volume)).unwrap()
    }

    fn ask(&self, request: DriveRequest) -> DriveAnswer {
        self.try_ask(request).unwrap()
    }

    fn try_ask(&self, request: DriveRequest) -> Result<DriveAnswer, String> {
        let served = self.server().system.block_on(self.server().drives.serve(request));
        served.map_err(|error| error.to_string())
    }

    fn rekey(&self) -> Result<DriveAnswer, String> {
        self.try_ask(DriveRequest::Rekey { name: "big".to_owned() })
    }

    fn key(&self) -> DriveKeyLine {
        let DriveAnswer::List(lines) = self.ask(DriveRequest::List) else { panic!("no list") };
        let line = lines.into_iter().find(|line| line.name == "big").unwrap();
        assert!(line.problem.is_none() || self.far.is_none(), "{line:?}");
        line.key.unwrap()
    }

    /// Waits until the key is of an epoch, and none is being given.
    fn wait_for(&self, epoch: u32) {
        while (self.key().epoch, self.key().changing) != (epoch, false) {
            std::thread::yield_now();
        }
    }

    fn stop_drive(&mut self) {
        let Some((far, drive)) = self.far.take() else { return };
        drive.stop();
        drop(drive);
        far.shutdown(STOP);
    }

    fn start_drive(&mut self) {
        let far = System::with_workers(1).unwrap();
        let drive = daemon(&far, self.there.path(), self.address);
        self.far = Some((far, drive));
    }

    fn edit(&self, change: impl Fn(&mut super::RemoteSettings)) {
        let mut registry = Registry::read(self.here.path()).unwrap();
        let DriveKind::Remote(settings) = &mut registry.drives[0].kind else { panic!("no remote drive") };
        change(settings);
        registry.write(self.here.path()).unwrap();
    }

    fn end(mut self) {
        self.stop_drive();
        self.stop();
    }
}

#[test]
fn a_drive_gets_other_keys_while_it_is_used_and_over_starts_of_both_ends() {
    let mut joined = Joined::new();
    let fid = joined.make();
    joined.use_it(fid);
    let first = joined.key();
    assert_eq!((first.epoch, first.changing), (1, false));
    for epoch in 2..5 {
        joined.rekey().unwrap();
        assert_eq!(joined.key().epoch, epoch);
        joined.use_it(fid);
    }
    joined.stop_drive();
    // The registry keeps the key to come, so that a change that is interrupted leaves both known.
    joined.rekey().unwrap_err();
    assert!(joined.key().changing);
    joined.start_drive();
    joined.use_it(fid);
    joined.rekey().unwrap();
    assert_eq!((joined.key().epoch, joined.key().changing), (5, false));
    joined.stop();
    joined.start(None);
    joined.use_it(fid);
    assert!(joined.try_ask(DriveRequest::Rekey { name: "nobody".to_owned() }).is_err());
    joined.end();
}

#[test]
fn a_change_of_a_key_that_was_interrupted_is_completed_at_the_next_start() {
    for is_given in [false, true] {
        let mut joined = Joined::new();
        let fid = joined.make();
        joined.stop();
        joined.edit(|settings| settings.prepare_next(&*afs_env::Parts::inline()));
        let before = std::fs::read(joined.here.path().join("drives.toml")).unwrap();
        joined.start(None);
        joined.wait_for(2);
        if is_given {
            // The registry of before: the drive has the key, and the file server does not know it.
            joined.stop();
            std::fs::write(joined.here.path().join("drives.toml"), before).unwrap();
            joined.start(None);
            joined.wait_for(2);
        }
        joined.use_it(fid);
        joined.end();
    }
}

#[test]
fn a_key_is_changed_by_its_age_and_one_of_unknown_age_begins_to_age() {
    let mut joined = Joined::new();
    let month = Duration::from_secs(30 * 86_400);
    joined.stop();
    joined.edit(|settings| settings.since = None);
    joined.start(Some(month));
    while joined.key().age.is_none() {
        std::thread::yield_now();
    }
    assert_eq!(joined.key().epoch, 1);
    joined.stop();
    joined.edit(|settings| settings.since = settings.since.map(|since| since - month.as_secs()));
    joined.start(None);
    assert_eq!(joined.key().epoch, 1, "it does not matter");
    joined.stop();
    joined.start(Some(month));
    joined.wait_for(2);
    assert!(joined.key().age.is_some_and(|age| age < 3600));
    joined.end();
}
