//! Lock file of a cache directory, with a record of the mount that holds it.

use crate::mounts;
use crate::process::Process;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest time that an unmounted mount may take to store dirty data and end.
const END_MAX: Duration = Duration::from_secs(20);
/// Longest record read, in bytes.
const LEN_MAX: u64 = 32 << 10;

/// Record of the mount that holds the lock.
#[derive(Serialize, Deserialize)]
struct Holder {
    pid: u32,
    directory: PathBuf,
}

/// Takes the lock for the mount at `directory`, and records it. If the holder has been unmounted already, waits for its
/// end, for a bounded time.
///
/// # Errors
/// Another mount holds the lock: its description, if it is known.
pub(super) fn take(mut lock: &File, directory: &Path) -> Result<(), Option<String>> {
    if lock.try_lock().is_err() {
        let holder = read(lock).ok_or(None)?;
        wait(&holder);
        let who = || format!("the mount at {} (process {})", holder.directory.display(), holder.pid);
        lock.try_lock().map_err(|_| Some(who()))?;
    }
    let own = Holder { pid: std::process::id(), directory: directory.to_owned() };
    let mut write = || -> io::Result<()> {
        lock.set_len(0)?;
        lock.rewind()?;
        lock.write_all(&serde_json::to_vec(&own)?)
    };
    // Without the record the next mount has a less precise error.
    let _ = write();
    Ok(())
}

fn read(mut lock: &File) -> Option<Holder> {
    let mut text = Vec::new();
    lock.rewind().ok()?;
    lock.take(LEN_MAX).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn wait(holder: &Holder) {
    let is_mounted = mounts::list().is_ok_and(|all| all.iter().any(|m| m.directory == holder.directory));
    if is_mounted || holder.pid == std::process::id() {
        return;
    }
    if let Ok(Some(process)) = Process::open(holder.pid) {
        let _ = process.ended_within(END_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_holder_that_is_unmounted_is_waited_for_and_another_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let open =
            || File::options().read(true).write(true).create(true).truncate(false).open(&path).unwrap();
        // The lock is held by a process that ends by itself, as a mount does when it has stored its dirty data.
        let held = open();
        held.lock().unwrap();
        let mut ending = Command::new("sleep").arg("0.3").stdin(held).spawn().unwrap();
        let reaper = std::thread::spawn({
            let record = Holder { pid: ending.id(), directory: "/not/mounted".into() };
            open().write_all(&serde_json::to_vec(&record).unwrap()).unwrap();
            move || ending.wait()
        });
        let second = open();
        take(&second, Path::new("/b")).unwrap();
        reaper.join().unwrap().unwrap();
        assert_eq!(read(&open()).unwrap().directory, Path::new("/b"));
        let other = take(&open(), Path::new("/c"));
        assert_eq!(other, Err(Some(format!("the mount at /b (process {})", std::process::id()))));
    }
}
