//! Measures durable creates and reads of vnodes on a real disk.
//!
//! `cargo run --release -p afs-volume --example creates -- DIR [SECONDS [FILES]]` creates a store in DIR
//! (which must not contain one), keeps 1, 8 and 64 creates in flight for SECONDS each (default 3) in
//! directories of FILES files (default 1000), then reads records of vnodes, and prints a line for each.

#![allow(clippy::disallowed_methods, reason = "it measures real time and real threads")]

use std::error::Error;
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use afs_drive::FileDrive;
use afs_env::{Job, Parts};
use afs_kv::{FileMedium, Kv};
use afs_volume::{Actor, Config, TABLES, Volume, VolumeError, VolumeSpec, VolumeStore};
use afs_wire::acl::Acl;
use afs_wire::fs::SetStatus;
use afs_wire::ids::{Fid, ViceId, VnodeId, VolumeId, VolumeKind, VolumeName};

const VOLUME: VolumeId = VolumeId(536_870_912);
const ACTOR: Actor = Actor { id: ViceId(1001), administrator: false };

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let Some(directory) = arguments.next().map(PathBuf::from) else {
        return Err("usage: creates DIR [SECONDS [FILES]]".into());
    };
    let seconds = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let files = arguments.next().map_or(Ok(1000), |text| text.parse())?;
    let duration = Duration::from_secs(seconds);
    fs::create_dir_all(&directory)?;
    let (store, volume) = open(&directory)?;
    for in_flight in [1, 8, 64] {
        let directory = block_on(make_dir(&volume, &format!("flight{in_flight}")))?;
        report(
            &format!("durable creates, {in_flight} in flight"),
            creates(&volume, directory, in_flight, duration, files)?,
        );
    }
    let highest = volume.header().file_count as u32;
    report("vnode reads, cached, one thread", reads(&volume, 1000, duration)?);
    report("vnode reads, all over, one thread", reads(&volume, highest, duration)?);
    println!("{:>12}  vnodes in the volume", highest);
    drop((volume, store));
    let start = Instant::now();
    open(&directory)?;
    println!("{:>9.0} ms  opening again", start.elapsed().as_secs_f64() * 1000.0);
    Ok(())
}

fn open(directory: &Path) -> Result<(VolumeStore, Arc<Volume>), Box<dyn Error>> {
    let env = Parts::default().with_blocking(pool(2)).shared();
    let medium = Arc::new(FileMedium::open(directory.join("index"))?);
    let kv = Kv::open(medium, TABLES, env.clone(), afs_kv::Config::default())?;
    let drive = FileDrive::open_directory(directory.join("drive"), env.clone())?;
    let store = block_on(VolumeStore::open(kv, Arc::new(drive), env, Config::default()))?;
    let volume = match store.volume(VOLUME) {
        Some(volume) => volume,
        None => block_on(store.create_volume(VolumeSpec {
            id: VOLUME,
            name: VolumeName::new("measured")?,
            owner: ACTOR.id,
            kind: VolumeKind::ReadWrite,
            parent: VolumeId(0),
            max_quota: 0,
            root: Some(Acl::of_new_volume()),
        }))?,
    };
    Ok((store, volume))
}

async fn make_dir(volume: &Arc<Volume>, name: &str) -> Result<Fid, VolumeError> {
    let name = name.as_bytes().to_vec();
    let set = SetStatus::default();
    let created = volume.update(move |tx| tx.make_dir(Fid::root(VOLUME), &name, &set, ACTOR)).await?;
    Ok(created.object.fid(VOLUME))
}

/// Keeps `in_flight` creates in flight, in directories of `files` files; returns the rate per second, and the
/// CPU time of each.
fn creates(
    volume: &Arc<Volume>,
    parent: Fid,
    in_flight: u64,
    duration: Duration,
    files: u64,
) -> Result<(f64, f64), Box<dyn Error>> {
    let cpu = cpu_micros();
    let (done, finished) = channel();
    let (mut started, mut completed) = (0, 0);
    let mut directory = parent;
    let start = Instant::now();
    let mut elapsed = start.elapsed();
    while elapsed < duration || completed < started {
        while elapsed < duration && started - completed < in_flight {
            if started % files == 0 {
                directory = block_on(make_dir_in(volume.clone(), parent, started))?;
            }
            let (volume, name) = (volume.clone(), format!("file{started}").into_bytes());
            spawn(
                async move {
                    let set = SetStatus::default();
                    volume.update(move |tx| tx.create_file(directory, &name, &set, ACTOR)).await.map(drop)
                },
                done.clone(),
            );
            started += 1;
        }
        finished.recv()??;
        completed += 1;
        elapsed = start.elapsed();
    }
    Ok((completed as f64 / elapsed.as_secs_f64(), (cpu_micros() - cpu) / completed as f64))
}

async fn make_dir_in(volume: Arc<Volume>, parent: Fid, number: u64) -> Result<Fid, VolumeError> {
    let set = SetStatus::default();
    let name = format!("dir{number}").into_bytes();
    let created = volume.update(move |tx| tx.make_dir(parent, &name, &set, ACTOR)).await?;
    Ok(created.object.fid(VOLUME))
}

/// Reads records of the first `highest` files, in scattered order.
fn reads(volume: &Arc<Volume>, highest: u32, duration: Duration) -> Result<(f64, f64), VolumeError> {
    let cpu = cpu_micros();
    let start = Instant::now();
    let (mut count, mut found) = (0u64, 0u64);
    while start.elapsed() < duration {
        for _ in 0..1000 {
            let vnode = 2 * (count.wrapping_mul(2_654_435_761) % u64::from(highest)) as u32 + 2;
            found += u64::from(volume.vnode(VnodeId(vnode))?.is_some());
            count += 1;
        }
    }
    assert!(found > 0, "nothing was found");
    Ok((count as f64 / start.elapsed().as_secs_f64(), (cpu_micros() - cpu) / count as f64))
}

fn report(what: &str, (per_second, cpu_micros): (f64, f64)) {
    println!("{per_second:>10.0} /s  {cpu_micros:>7.2} us of CPU each  {what}");
}

/// CPU time of this process so far, in microseconds, to a hundredth of a second.
fn cpu_micros() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The fields after the program's name, which may contain blanks.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks: f64 =
        fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    ticks * 10_000.0
}

/// Threads that run jobs.
fn pool(threads: usize) -> impl Fn(Job) + Send + Sync {
    let (sender, receiver) = channel::<Job>();
    let receiver = Arc::new(Mutex::new(receiver));
    for _ in 0..threads {
        let receiver = receiver.clone();
        thread::spawn(move || {
            loop {
                let job = match receiver.lock() {
                    Ok(receiver) => receiver.recv(),
                    Err(_) => return,
                };
                match job {
                    Ok(job) => job(),
                    Err(_) => return,
                }
            }
        });
    }
    let sender = Mutex::new(sender);
    move |job| {
        if let Ok(sender) = sender.lock() {
            let _ = sender.send(job);
        }
    }
}

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A future that is polled by the thread that wakes it.
struct Spawned {
    task: Mutex<Option<Task>>,
    woken: AtomicU64,
}

impl Wake for Spawned {
    fn wake(self: Arc<Self>) {
        if self.woken.fetch_add(1, Ordering::AcqRel) > 0 {
            return;
        }
        let waker = Waker::from(self.clone());
        let Ok(mut slot) = self.task.lock() else { return };
        loop {
            let seen = self.woken.load(Ordering::Acquire);
            let Some(task) = slot.as_mut() else { return };
            if task.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Ready(()) {
                *slot = None;
                return;
            }
            if self.woken.compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return;
            }
        }
    }
}

fn spawn(
    future: impl Future<Output = Result<(), VolumeError>> + Send + 'static,
    done: Sender<Result<(), VolumeError>>,
) {
    let task: Task = Box::pin(async move {
        let _ = done.send(future.await);
    });
    Arc::new(Spawned { task: Mutex::new(Some(task)), woken: AtomicU64::new(0) }).wake();
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}
