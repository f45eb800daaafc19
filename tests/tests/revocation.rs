//! Revocation on a real cell: a file is being read over the data path when the right to it ends. Takes some seconds.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use andrew_tests::live::cell::{CELL, Cell, CellOptions, command};
use andrew_tests::live::mount::Mount;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::netns::Netns;
use andrew_tests::live::process::seconds;
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::wait::until;
use andrew_tests::live::watchdog::Watchdog;
use serde_json::Value;

const SERVER: &str = "127.0.0.1";
const LENGTH: usize = 512 << 20;
const PIECE: usize = 1 << 20;
/// Between two pieces: the file would take ten seconds.
const PAUSE: Duration = Duration::from_millis(20);
/// The stated bound is a second; what the machine does besides may take the rest.
const MOST: Duration = Duration::from_secs(5);
const EACCES: i32 = 13;

/// How a read of a whole file ended, and when.
struct Ended {
    read: usize,
    error: Option<io::Error>,
    at: Instant,
}

/// Reads a file slowly to its end, or to an error.
fn read_slowly(mut file: File) -> Ended {
    let (mut piece, mut read) = (vec![0; PIECE], 0);
    let error = loop {
        match file.read(&mut piece) {
            Ok(0) => break None,
            Ok(len) => read += len,
            Err(error) => break Some(error),
        }
        thread::sleep(PAUSE);
    };
    Ended { read, error, at: Instant::now() }
}

/// Counters of the cell's drive, as the owner sees them.
fn counts(netns: &Netns, cell: &Cell) -> Value {
    let told = command(netns, &["status", "--json", "--state", cell.state().to_str().unwrap()]);
    serde_json::from_str::<Value>(&told).unwrap()["data_path_counts"].clone()
}

fn set_acl(netns: &Netns, directory: &Path, rights: &str) {
    let _ = command(netns, &["fs", "setacl", directory.to_str().unwrap(), "system:anyuser", rights]);
}

#[test]
fn a_stream_over_the_data_path_ends_with_eacces_when_the_access_list_changes() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("revocation");
    let below = scratch.path().to_owned();
    let _watchdog = Watchdog::new("revocation", seconds(200), move || unmount_below(&below));
    let netns = Netns::fresh("andrew-revocation");
    let cell = Cell::up(&netns, scratch.path(), &CellOptions::at(SERVER, "rl"));
    let directory = cell.mount().join("d");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("large"), vec![b'x'; LENGTH]).unwrap();
    // A mount of its own, of nobody in particular, that has nothing of it.
    let other = Mount::new(&netns, CELL, SERVER, scratch.path(), "other", &[]);
    let file = File::open(other.path().join("d/large")).unwrap();
    let reader = thread::spawn(move || read_slowly(file));
    let before = until("bytes that come by the data path", seconds(60), || {
        let counts = counts(&netns, &cell);
        (counts["sent_bytes"].as_u64()? > 8 << 20).then_some(counts)
    });
    assert_eq!(before["refused"]["revoked"], 0, "{before}");
    let changed = Instant::now();
    set_acl(&netns, &directory, "none");
    let ended = reader.join().unwrap();
    let after = counts(&netns, &cell);
    let code = ended.error.as_ref().and_then(io::Error::raw_os_error);
    assert_eq!(code, Some(EACCES), "{} bytes were read: {:?}, {after}", ended.read, ended.error);
    let took = ended.at.saturating_duration_since(changed);
    println!("ended {took:?} after the change began, {} bytes were read; {after}", ended.read);
    assert!(took < MOST, "{took:?}");
    assert!(after["refused"]["revoked"].as_u64().unwrap() > 0, "{after}");
    assert!(after["revocations"].as_u64() > before["revocations"].as_u64(), "{after}");
    assert!(ended.read < LENGTH && after["sent_bytes"].as_u64().unwrap() < LENGTH as u64, "{after}");
    // Who may read it still, does.
    assert_eq!(fs::read(directory.join("large")).unwrap().len(), LENGTH);
    drop(other);
    cell.stop();
}
