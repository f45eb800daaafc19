//! Measures clones on a real disk: the time of one beside a number of files, the time to create the files,
//! and the time to open a store of them.
//!
//! `cargo run --release -p afs-volume --example clones -- DIR [FILES...]` creates for each number of FILES
//! (default 10000 and 1000000) a store in DIR (which must not contain one) with so many empty files in
//! directories of 1000, makes 20 clones with a changed file between two, opens the store again, and prints a
//! line for each. A dump of each volume as it was filled is DIR/FILES.dump.

#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use std::error::Error;
use std::fs;
use std::future::Future;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Instant;

use afs_drive::FileDrive;
use afs_env::Parts;
use afs_kv::{FileMedium, Kv};
use afs_volume::dump::{DumpOptions, VolumeDump};
use afs_volume::{Actor, CloneSpec, Config, TABLES, Volume, VolumeError, VolumeSpec, VolumeStore};
use afs_wire::acl::Acl;
use afs_wire::fs::SetStatus;
use afs_wire::ids::{Fid, UnixSeconds, ViceId, VolumeId, VolumeKind, VolumeName};

const VOLUME: VolumeId = VolumeId(536_870_912);
const ACTOR: Actor = Actor { id: ViceId(1001), administrator: false };
const FILES_PER_DIRECTORY: u64 = 1000;
const CLONES: u32 = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let Some(directory) = arguments.next() else { return Err("usage: clones DIR [FILES...]".into()) };
    let mut counts = arguments.map(|text| text.parse()).collect::<Result<Vec<u64>, _>>()?;
    if counts.is_empty() {
        counts = vec![10_000, 1_000_000];
    }
    for files in counts {
        measure(&Path::new(&directory).join(files.to_string()), files)?;
    }
    Ok(())
}

fn measure(directory: &Path, files: u64) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(directory)?;
    let store = open(directory)?;
    let volume = block_on(store.create_volume(spec()?))?;
    fill(&volume, files)?;
    dump(&volume, &directory.with_extension("dump"))?;
    let mut times = clone_times(&store, &volume)?;
    times.sort_by(f64::total_cmp);
    println!("{files} files");
    println!("{:>10.2} ms  a clone, median of {CLONES}", times[times.len() / 2]);
    println!("{:>10.2} ms  a clone, the longest", times[times.len() - 1]);
    println!("{:>10} KiB of memory", memory_kib());
    drop((volume, store));
    let start = Instant::now();
    let store = open(directory)?;
    println!("{:>10.2} ms  opening again, {} volumes", millis(start), store.volumes().len());
    println!("{:>10} KiB on disk", disk_bytes(directory)? / 1024);
    Ok(())
}

fn open(directory: &Path) -> Result<VolumeStore, Box<dyn Error>> {
    let medium = Arc::new(FileMedium::open(directory.join("index"))?);
    let kv = Kv::open(medium, TABLES, Parts::inline(), afs_kv::Config::default())?;
    let drive = FileDrive::open_directory(directory.join("drive"), Parts::inline())?;
    Ok(block_on(VolumeStore::open(kv, Arc::new(drive), Parts::inline(), Config::default()))?)
}

fn spec() -> Result<VolumeSpec, Box<dyn Error>> {
    Ok(VolumeSpec {
        id: VOLUME,
        name: VolumeName::new("measured")?,
        kind: VolumeKind::ReadWrite,
        parent: VOLUME,
        owner: ACTOR.id,
        max_quota: 0,
        root: Some(Acl::of_new_volume()),
    })
}

/// Some hundred files a transaction: only their existence matters here.
fn fill(volume: &Arc<Volume>, files: u64) -> Result<(), VolumeError> {
    for first in (0..files).step_by(FILES_PER_DIRECTORY as usize) {
        let last = files.min(first + FILES_PER_DIRECTORY);
        let parent = block_on(volume.update(move |tx| {
            let name = format!("d{first}");
            tx.make_dir(Fid::root(VOLUME), name.as_bytes(), &SetStatus::default(), ACTOR)
        }))?;
        let directory = parent.object.fid(VOLUME);
        for from in (first..last).step_by(100) {
            let numbers = from..last.min(from + 100);
            block_on(volume.update(move |tx| make_files(tx, directory, numbers)))?;
        }
    }
    Ok(())
}

fn make_files(
    tx: &mut afs_volume::VolumeTx<'_, '_>,
    directory: Fid,
    numbers: std::ops::Range<u64>,
) -> Result<(), VolumeError> {
    for number in numbers {
        let name = format!("file{number}");
        tx.create_file(directory, name.as_bytes(), &SetStatus::default(), ACTOR)?;
    }
    Ok(())
}

fn dump(volume: &Arc<Volume>, to: &Path) -> Result<(), Box<dyn Error>> {
    let mut file = BufWriter::new(fs::File::create(to)?);
    let mut dump =
        VolumeDump::new(volume.clone(), DumpOptions { since: UnixSeconds(0), all_directories: true });
    while let Some(piece) = block_on(dump.next())? {
        file.write_all(&piece)?;
    }
    Ok(file.flush()?)
}

fn clone_times(store: &VolumeStore, volume: &Arc<Volume>) -> Result<Vec<f64>, Box<dyn Error>> {
    let mut times = Vec::new();
    for number in 0..CLONES {
        let name = VolumeName::new(&format!("clone{number}"))?;
        let spec =
            CloneSpec { id: VolumeId(VOLUME.0 + 1 + number), name, kind: VolumeKind::Backup, snapshot: true };
        let start = Instant::now();
        block_on(store.clone_volume(VOLUME, spec))?;
        times.push(millis(start));
        block_on(volume.update(move |tx| {
            let name = format!("after{number}");
            tx.create_file(Fid::root(VOLUME), name.as_bytes(), &SetStatus::default(), ACTOR)
        }))?;
    }
    Ok(times)
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

fn memory_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn disk_bytes(directory: &Path) -> Result<u64, std::io::Error> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        bytes += if meta.is_dir() { disk_bytes(&entry.path())? } else { meta.len() };
    }
    Ok(bytes)
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}
