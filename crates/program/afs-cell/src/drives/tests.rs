//! A file server's partition and a drive's daemon over TLS on real sockets: joining, new data, a restart of the drive, check,
//! removal.

use super::{
    AttachedDrives, DrainLine, DrainOrder, DrainState, DriveAnswer, DriveDaemon, DriveDaemonOptions,
    DriveRequest, Registry,
};
use afs_drive::{DriveId, MemorySegments, SegmentDrive};
use afs_kv::{Kv, MemoryMedium};
use afs_net::System;
use afs_server::Partitions;
use afs_volume::{Actor, Config, StoreData, TABLES, Volume, VolumeError, VolumeSpec, VolumeStore};
use afs_wire::acl::Acl;
use afs_wire::fs::SetStatus;
use afs_wire::ids::{Fid, PartitionId, ViceId, VolumeId, VolumeKind, VolumeName};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

pub(super) const VOLUME: VolumeId = VolumeId(536_870_912);
const ACTOR: Actor = Actor { id: ViceId(1), administrator: true };
pub(super) const CONTENT: &[u8] = &[7; 3_000_000];

fn partition(system: &Arc<System>) -> VolumeStore {
    partition_on(system, &MemoryMedium::new(), &MemorySegments::new(1 << 30))
}

pub(super) fn partition_on(
    system: &Arc<System>,
    index: &MemoryMedium,
    segments: &MemorySegments,
) -> VolumeStore {
    let env = system.env();
    let kv = Kv::open(Arc::new(index.clone()), TABLES, env.clone(), afs_kv::Config::default()).unwrap();
    let drive = SegmentDrive::open(segments.clone(), env.clone(), 4 << 20).unwrap();
    system.block_on(VolumeStore::open(kv, Arc::new(drive), env, Config::default())).unwrap()
}

pub(super) fn volume(system: &Arc<System>, store: &VolumeStore) -> Arc<Volume> {
    let spec = VolumeSpec {
        id: VOLUME,
        name: VolumeName::new("root.cell").unwrap(),
        owner: ViceId::ADMINISTRATORS,
        kind: VolumeKind::ReadWrite,
        parent: VolumeId(0),
        max_quota: 0,
        root: Some(Acl::of_new_volume()),
    };
    system.block_on(store.create_volume(spec)).unwrap()
}

pub(super) async fn make(volume: &Arc<Volume>) -> Result<Fid, VolumeError> {
    make_named(volume, b"file").await
}

pub(super) async fn make_named(volume: &Arc<Volume>, name: &'static [u8]) -> Result<Fid, VolumeError> {
    let made = volume.update(move |tx| {
        let made = tx.create_file(Fid::root(VOLUME), name, &SetStatus::default(), ACTOR)?;
        Ok(made.object)
    });
    Ok(made.await?.fid(VOLUME))
}

pub(super) async fn store(volume: &Arc<Volume>, fid: Fid, bytes: &'static [u8]) -> Result<(), VolumeError> {
    let mut writer = volume.write_data(0)?;
    writer.push(bytes::Bytes::from_static(bytes)).await?;
    let data = writer.finish().await?;
    let store = StoreData { fid, file_length: 0, status: SetStatus::default(), expected: None };
    volume.update(move |tx| tx.store_data(store, data, ACTOR).map(drop)).await
}

pub(super) async fn read(volume: &Arc<Volume>, fid: Fid) -> Result<Vec<u8>, VolumeError> {
    let mut reader = volume.read_data(fid, 0, u64::MAX)?;
    let mut bytes = Vec::new();
    while let Some(part) = reader.next().await? {
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

pub(super) fn use_in(name: &str, partition: Option<&str>) -> DriveRequest {
    let partition = partition.map(str::to_owned);
    DriveRequest::Use { name: name.to_owned(), partition, copies: Vec::new(), same_host: false }
}

pub(super) fn daemon(system: &Arc<System>, directory: &Path, listen: SocketAddr) -> DriveDaemon {
    let options = DriveDaemonOptions { directory: directory.to_owned(), listen };
    DriveDaemon::start(system, &options).unwrap()
}

#[test]
fn a_drive_is_joined_used_started_again_checked_and_removed() {
    let [here, there] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let system = System::with_workers(2).unwrap();
    let far = System::with_workers(1).unwrap();
    let drive = daemon(&far, there.path(), SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let options = DriveDaemonOptions { directory: there.path().to_owned(), listen: drive.at() };
    let second = DriveDaemon::start(&far, &options).err().unwrap().to_string();
    assert!(second.ends_with("is served by another process already"), "{second}");
    let (address, join_key) = (drive.at(), drive.join_key().unwrap().to_text().to_string());
    let partition = partition(&system);
    let volume = volume(&system, &partition);
    let partitions = Partitions::new([(PartitionId(0), partition.clone())]);
    let drives = AttachedDrives::open(&system.env(), here.path(), &partitions, None).unwrap();
    let ask = |request| system.block_on(drives.serve(request));
    let name = || "big".to_owned();
    let add = |join_key: &str, name: &str| {
        ask(DriveRequest::Add { name: name.to_owned(), address, join_key: join_key.to_owned() })
    };
    assert!(add("andrew-drive-1.x", "big").is_err());
    add(&join_key, "big").unwrap();
    assert!(add(&join_key, "other").is_err(), "the join key is void");
    ask(use_in("big", Some("a"))).unwrap();
    let Ok(DriveAnswer::List(lines)) = ask(DriveRequest::List) else { panic!("no list") };
    let line = lines.iter().find(|line| line.name == "big").unwrap();
    assert_eq!((line.partitions.as_slice(), line.free.is_some()), (&["/vicepa".to_owned()][..], true));
    let fid = system.block_on(make(&volume)).unwrap();
    system.block_on(store(&volume, fid, CONTENT)).unwrap();
    assert!(partition.has_chunks_on(DriveId(1)).unwrap());
    assert!(std::fs::read_dir(there.path().join("store-0")).unwrap().count() > 1);

    // The drive starts again, at the same address and without a join key.
    drive.stop();
    drop(drive);
    far.shutdown(std::time::Duration::from_secs(10));
    let far = System::with_workers(1).unwrap();
    let drive = daemon(&far, there.path(), address);
    assert!(drive.join_key().is_none());
    assert!(system.block_on(read(&volume, fid)).unwrap() == CONTENT);
    let Ok(DriveAnswer::Checked(checked)) = ask(DriveRequest::Check { name: name() }) else {
        panic!("no check")
    };
    assert_eq!((checked.bytes, checked.bad), (CONTENT.len() as u64, 0));

    assert!(ask(DriveRequest::Remove { name: name() }).is_err(), "new data go there");
    ask(use_in("local", None)).unwrap();
    assert!(ask(DriveRequest::Remove { name: name() }).is_err(), "a file is there");
    system.block_on(store(&volume, fid, CONTENT)).unwrap();
    while system.block_on(partition.background_step()).unwrap() {}
    ask(DriveRequest::Remove { name: name() }).unwrap();
    assert!(system.block_on(read(&volume, fid)).unwrap() == CONTENT);
    drive.stop();
    far.shutdown(std::time::Duration::from_secs(10));
    system.shutdown(std::time::Duration::from_secs(10));
}

/// Asks until a drain is over.
fn wait_drained(system: &Arc<System>, drives: &AttachedDrives) -> DrainLine {
    loop {
        let answer = system.block_on(drives.serve(DriveRequest::Drained { name: "big".to_owned() }));
        match answer.unwrap() {
            DriveAnswer::Drain(line) if line.state == DrainState::Drained => return line,
            _ => std::thread::yield_now(),
        }
    }
}

#[test]
fn a_drive_is_drained_resumed_after_a_restart_and_removed() {
    let [here, there] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let system = System::with_workers(2).unwrap();
    let far = System::with_workers(1).unwrap();
    let drive = daemon(&far, there.path(), SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let (address, join_key) = (drive.at(), drive.join_key().unwrap().to_text().to_string());
    let partition = partition(&system);
    let volume = volume(&system, &partition);
    let partitions = Partitions::new([(PartitionId(0), partition.clone())]);
    let drives = AttachedDrives::open(&system.env(), here.path(), &partitions, None).unwrap();
    let ask = |request| system.block_on(drives.serve(request));
    let name = || "big".to_owned();
    let drain = |rate| DriveRequest::Drain { name: name(), to: None, rate };
    let use_ = |name: &str| use_in(name, None);
    ask(DriveRequest::Add { name: name(), address, join_key }).unwrap();
    ask(use_("big")).unwrap();
    let fid = system.block_on(make(&volume)).unwrap();
    system.block_on(store(&volume, fid, CONTENT)).unwrap();

    let refused = ask(drain(None)).unwrap_err().to_string();
    assert!(refused.contains("andrew drive use"), "{refused}");
    ask(use_("local")).unwrap();
    let refused = ask(DriveRequest::Remove { name: name() }).unwrap_err().to_string();
    assert!(refused.contains("andrew drive drain big"), "{refused}");
    let to_itself = DriveRequest::Drain { name: name(), to: Some(name()), rate: None };
    assert!(ask(to_itself).is_err());
    // So slow that it is not over when it is cancelled.
    let Ok(DriveAnswer::Drain(line)) = ask(drain(Some(1))) else { panic!("no drain") };
    assert_eq!(line.state, DrainState::Draining);
    assert!(ask(use_("big")).unwrap_err().to_string().contains("--cancel"));
    ask(DriveRequest::CancelDrain { name: name() }).unwrap();
    assert!(ask(DriveRequest::Drained { name: name() }).is_err());

    // An order of the registry is carried out at the next start.
    ask(use_("big")).unwrap();
    system.block_on(store(&volume, fid, CONTENT)).unwrap();
    ask(use_("local")).unwrap();
    let mut registry = Registry::read(here.path()).unwrap();
    registry.set_draining(DriveId(1), Some(DrainOrder { to: Some(0), rate: 1 << 40 }));
    registry.write(here.path()).unwrap();
    drop(drives);
    system.env().spawn(Box::pin(partition.clone().run_background()));
    let drives = AttachedDrives::open(&system.env(), here.path(), &partitions, None).unwrap();
    let line = wait_drained(&system, &drives);
    assert_eq!((line.left_chunks, line.bad), (0, 0));
    let ask = |request| system.block_on(drives.serve(request));
    let Ok(DriveAnswer::List(lines)) = ask(DriveRequest::List) else { panic!("no list") };
    assert!(lines.iter().any(|line| line.name == "big" && line.drain.is_some()));
    ask(DriveRequest::Remove { name: name() }).unwrap();
    assert!(system.block_on(read(&volume, fid)).unwrap() == CONTENT);
    assert!(!std::fs::read_to_string(here.path().join("drives.toml")).unwrap().contains("draining"));
    drive.stop();
    far.shutdown(std::time::Duration::from_secs(10));
    system.shutdown(std::time::Duration::from_secs(10));
}

#[test]
fn copies_are_made_on_another_drive_and_read_while_the_first_is_away() {
    let [here, there] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let system = System::with_workers(2).unwrap();
    let far = System::with_workers(1).unwrap();
    let drive = daemon(&far, there.path(), SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let (address, join_key) = (drive.at(), drive.join_key().unwrap().to_text().to_string());
    let (index, segments) = (MemoryMedium::new(), MemorySegments::new(1 << 30));
    let partition = partition_on(&system, &index, &segments);
    let volume = volume(&system, &partition);
    let partitions = Partitions::new([(PartitionId(0), partition.clone())]);
    let drives = AttachedDrives::open(&system.env(), here.path(), &partitions, None).unwrap();
    let ask = |request| system.block_on(drives.serve(request));
    ask(DriveRequest::Add { name: "big".to_owned(), address, join_key }).unwrap();
    let use_ = |copies: &[&str], same_host| {
        let copies = copies.iter().map(|name| (*name).to_owned()).collect();
        ask(DriveRequest::Use { name: "big".to_owned(), partition: None, copies, same_host })
    };
    let refused = use_(&["local"], false).unwrap_err().to_string();
    assert!(refused.contains("one host"), "{refused}");
    assert!(use_(&["big"], true).is_err() && use_(&["nobody"], true).is_err());
    let fid = system.block_on(make(&volume)).unwrap();
    use_(&[], false).unwrap();
    system.block_on(store(&volume, fid, CONTENT)).unwrap();
    use_(&["local"], true).unwrap();
    let of_partition = Registry::read(here.path()).unwrap().drives_of(PartitionId(0));
    assert_eq!(of_partition, [DriveId(1), DriveId::OWN]);
    while partition.contents_of_drive(DriveId::OWN).unwrap().bytes < CONTENT.len() as u64 {
        std::thread::yield_now();
    }
    let Ok(DriveAnswer::List(lines)) = ask(DriveRequest::List) else { panic!("no list") };
    let copying = lines.iter().filter(|line| !line.copies.is_empty());
    assert_eq!(copying.map(|line| line.name.as_str()).collect::<Vec<_>>(), ["local"]);
    let drain = DriveRequest::Drain { name: "local".to_owned(), to: None, rate: None };
    assert!(ask(drain).is_err(), "it takes copies");
    drive.stop();
    far.shutdown(std::time::Duration::from_secs(10));
    assert!(system.block_on(read(&volume, fid)).unwrap() == CONTENT);

    // It never comes back, also not after a restart.
    let lose = || DriveRequest::Lose { name: "big".to_owned() };
    assert!(ask(lose()).unwrap_err().to_string().contains("andrew drive use"), "new data go there");
    ask(use_in("local", None)).unwrap();
    ask(lose()).unwrap();
    assert!(ask(use_in("big", None)).unwrap_err().to_string().contains("lost"));
    drop((drives, partitions, partition, volume));
    system.shutdown(std::time::Duration::from_secs(10));

    let system = System::with_workers(2).unwrap();
    let partition = partition_on(&system, &index, &segments);
    let volume = partition.volume(VOLUME).unwrap();
    let partitions = Partitions::new([(PartitionId(0), partition.clone())]);
    let drives = AttachedDrives::open(&system.env(), here.path(), &partitions, None).unwrap();
    let ask = |request| system.block_on(drives.serve(request));
    let Ok(DriveAnswer::List(lines)) = ask(DriveRequest::List) else { panic!("no list") };
    assert!(lines.iter().any(|line| line.problem.as_deref().is_some_and(|why| why.contains("lost"))));
    system.env().spawn(Box::pin(partition.clone().run_background()));
    ask(DriveRequest::Drain { name: "big".to_owned(), to: None, rate: None }).unwrap();
    let line = wait_drained(&system, &drives);
    assert_eq!((line.left_chunks, line.bad), (0, 0));
    ask(DriveRequest::Remove { name: "big".to_owned() }).unwrap();
    assert!(system.block_on(read(&volume, fid)).unwrap() == CONTENT);
    system.shutdown(std::time::Duration::from_secs(10));
}
