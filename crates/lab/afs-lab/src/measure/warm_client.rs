//! Calls for capabilities and layouts of a client that goes on using its files: opens of busy client-minutes of Gibson et al. 1997 in
//! a mount, counted by the mount itself.

use super::Mounted;
use crate::andrew::{Counters, Probe};
use crate::bulk::Way;
use crate::error::{Context, LabError};
use crate::load::CAPABILITY_CALLS;
use crate::measured_costs::WarmClient;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Opens of a busy client-minute of the AFS trace: 480.8 thousand in 2,809 (Tables 5 and 7).
const OPENS: u32 = 171;
/// Directories in which the files are. The paper does not tell them.
const DIRECTORIES: u32 = 8;
/// Bytes of a file: more than what is left to calls.
const FILE_BYTES: usize = 128 << 10;
const MINUTE: Duration = Duration::from_secs(60);

/// Reads files past the cache for so many minutes, each file once in each, and counts the calls; the minute before does not count.
///
/// # Errors
/// The directory is no mount that tells its calls; a file cannot be made or read; `stop` became true. What was made is removed.
pub fn warm_client(mount: &Mounted<'_>, minutes: u32, stop: &AtomicBool) -> Result<WarmClient, LabError> {
    let home = mount.place.directory.join(format!("andrew-lab-warm-{}", std::process::id()));
    fs::create_dir(&home).during("make the directory", &home)?;
    let counted = measure(mount, &home, minutes, stop);
    let removed = fs::remove_dir_all(&home).during("remove", &home);
    let counted = counted?;
    removed.map(|()| counted)
}

fn measure(
    mount: &Mounted<'_>,
    home: &Path,
    minutes: u32,
    stop: &AtomicBool,
) -> Result<WarmClient, LabError> {
    let files = make(home)?;
    // The client gets warm.
    minute(mount, &files, stop)?;
    let before = counters(mount, home)?;
    for _ in 0..minutes {
        minute(mount, &files, stop)?;
    }
    let calls = counters(mount, home)?.since(&before).calls_by_operation;
    let of = |call: &str| {
        f64::from(u32::try_from(calls.get(call).copied().unwrap_or_default()).unwrap_or(u32::MAX))
    };
    let counted = CAPABILITY_CALLS.map(|call| (call.to_owned(), of(call) / f64::from(minutes.max(1))));
    Ok(WarmClient {
        minutes,
        opens_per_minute: OPENS,
        directories: DIRECTORIES,
        calls_per_minute: counted.into_iter().filter(|one| one.1 > 0.0).collect(),
    })
}

/// Opens each file once, at equal intervals. The time between opens is of what is measured: capabilities end by it.
fn minute(mount: &Mounted<'_>, files: &[PathBuf], stop: &AtomicBool) -> Result<(), LabError> {
    let began = Instant::now();
    for (number, file) in (1..).zip(files) {
        if stop.load(Ordering::Acquire) {
            return Err(LabError::Stopped);
        }
        open(mount, file)?;
        std::thread::sleep((MINUTE * number / OPENS).saturating_sub(began.elapsed()));
    }
    Ok(())
}

fn make(home: &Path) -> Result<Vec<PathBuf>, LabError> {
    let contents = vec![7; FILE_BYTES];
    let directories = (0..DIRECTORIES).map(|number| home.join(number.to_string()));
    let directories: Vec<PathBuf> = directories.collect();
    for directory in &directories {
        fs::create_dir(directory).during("make the directory", directory)?;
    }
    let file = |(number, directory): (u32, &PathBuf)| {
        let file = directory.join(number.to_string());
        fs::write(&file, &contents).during("write", &file).map(|()| file)
    };
    (0..OPENS).zip(directories.iter().cycle()).map(file).collect()
}

/// A first use: nothing of the file is cached.
fn open(mount: &Mounted<'_>, file: &Path) -> Result<(), LabError> {
    mount.place.cache.make_cold(file, Way::Bypassed)?;
    let got = fs::read(file).during("read", file)?.len() as u64;
    let want = FILE_BYTES as u64;
    if got == want { Ok(()) } else { Err(LabError::WrongLength { path: file.to_owned(), got, want }) }
}

fn counters(mount: &Mounted<'_>, home: &Path) -> Result<Counters, LabError> {
    let told = mount.probe.and_then(Probe::read);
    told.ok_or_else(|| LabError::Answer { command: format!("getfattr -n afs.counters {}", home.display()) })
}
