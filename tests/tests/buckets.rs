//! A cell whose file data is in a bucket of an S3 server of another implementation: faults, outages, kills, other clients.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use crate::server;

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};

use andrew_tests::live::cell::{CELL, Cell, CellOptions, command};
use andrew_tests::live::mount::Mount;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::netns::Netns;
use andrew_tests::live::peers::Hosts;
use andrew_tests::live::process::seconds;
use andrew_tests::live::residents::{Home, Residents};
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::wait::{until, until_equal};
use andrew_tests::live::watchdog::Watchdog;
use server::proxy::{Fate, Proxy};
use server::{Moto, python};

/// An S3 server behind a proxy, in the namespace of a file server.
struct Bucket {
    proxy: Proxy,
    _moto: Moto,
}

impl Bucket {
    fn in_namespace(netns: &Netns) -> Option<Self> {
        let python = python()?;
        Some(netns.inside(|| {
            let moto = Moto::start(&python);
            Self { proxy: Proxy::start(moto.address), _moto: moto }
        }))
    }

    fn serve_all(&self) {
        self.proxy.choose(|_, _| Fate::Served);
    }

    fn refuse_all(&self) {
        self.proxy.choose(|_, _| Fate::SlowDown);
    }

    /// Makes it the drive that takes new data.
    fn add(&self, netns: &Netns, cell: &Cell, folder: &Path) {
        let credentials = folder.join("credentials");
        let mut file =
            fs::File::options().create_new(true).write(true).mode(0o600).open(&credentials).unwrap();
        file.write_all(b"aws_access_key_id = AKID\naws_secret_access_key = secret\n").unwrap();
        let (state, endpoint) = (cell.state().to_str().unwrap(), format!("http://{}", self.proxy.address));
        let drive = |words: &[&str]| command(netns, &[&["drive"], words, &["--state", state]].concat());
        let credentials = credentials.to_str().unwrap();
        let said = drive(&[
            "add",
            "cold",
            "--bucket",
            "s3://andrew/live.test",
            "--endpoint",
            &endpoint,
            "--credentials",
            credentials,
        ]);
        assert!(said.contains("drive cold in s3://andrew/live.test belongs to this file server"), "{said}");
        let _ = drive(&["use", "cold"]);
        assert!(drive(&["list"]).contains("cold  bucket at s3://andrew/live.test of http://127.0.0.1:"));
    }
}

fn content(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| ((at * 31 + seed * 7 + at / 251) % 253) as u8).collect()
}

const LENGTHS: [usize; 6] = [1, 5000, 70_000, 1 << 20, (3 << 20) + 17, 12 << 20];

fn write_all(top: &Path, round: usize) {
    for (at, len) in LENGTHS.into_iter().enumerate() {
        fs::write(top.join(format!("file{at}")), content(at + round, len)).unwrap();
    }
}

fn check_all(top: &Path, round: usize) {
    for (at, len) in LENGTHS.into_iter().enumerate() {
        assert!(fs::read(top.join(format!("file{at}"))).unwrap() == content(at + round, len), "file{at}");
    }
}

fn is_eio<T>(result: io::Result<T>) -> bool {
    result.err().and_then(|error| error.raw_os_error()) == Some(libc::EIO)
}

fn store(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[test]
fn files_in_a_bucket_are_there_whatever_happens_to_its_store_and_to_the_server() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("buckets");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("buckets", seconds(900), move || unmount_below(&folder));
    let netns = Netns::fresh("andrew-bucket");
    let Some(bucket) = Bucket::in_namespace(&netns) else { return };
    let options = CellOptions::at("127.0.0.1", "rlidwka");
    let mut cell = Cell::serve(&netns, scratch.path(), &options);
    let mount = |name: &str| Mount::new(&netns, CELL, "127.0.0.1", scratch.path(), name, &[]);
    let first = mount("first");
    fs::write(first.path().join("near"), content(9, 2 << 20)).unwrap();
    bucket.add(&netns, &cell, scratch.path());
    write_all(first.path(), 0);
    bucket.serve_all();
    check_all(mount("second").path(), 0);
    eprintln!("{} requests to read {} bytes", bucket.proxy.count(), LENGTHS.iter().sum::<usize>());
    assert!(bucket.proxy.count() <= 30, "about one for each MiB: {}", bucket.proxy.count());

    bucket.proxy.choose(|number, _| match number % 11 {
        2 => Fate::SlowDown,
        5 => Fate::Cut,
        7 => Fate::Lost,
        9 => Fate::Late,
        _ => Fate::Served,
    });
    write_all(first.path(), 1);
    check_all(mount("third").path(), 1);
    bucket.serve_all();

    // The server starts without the store, and serves what is elsewhere.
    drop(first);
    cell.stop();
    bucket.refuse_all();
    cell = Cell::serve(&netns, scratch.path(), &options);
    let away = mount("fourth");
    assert!(fs::read(away.path().join("near")).unwrap() == content(9, 2 << 20));
    assert_eq!(fs::metadata(away.path().join("file5")).unwrap().len(), 12 << 20);
    for _ in 0..2 {
        assert!(is_eio(fs::read(away.path().join("file4"))));
    }
    assert!(store(&away.path().join("new"), &content(1, 300_000)).is_err(), "new data go there");
    let listed = command(&netns, &["drive", "list", "--state", cell.state().to_str().unwrap()]);
    assert!(listed.contains("503 SlowDown"), "{listed}");
    bucket.serve_all();
    check_all(away.path(), 1);
    write_all(away.path(), 2);

    // Kills in the middle of stores: what was acknowledged is there.
    let acknowledged = stores_in_the_background(away.path());
    let mut names: Vec<usize> = Vec::new();
    for _ in 0..3 {
        names.extend(acknowledged.iter().take(4));
        cell.kill();
        cell = Cell::serve(&netns, scratch.path(), &options);
    }
    names.extend(acknowledged.iter());
    assert_eq!(names.len(), 40);
    let last = mount("fifth");
    for name in names {
        let stored = fs::read(last.path().join(format!("stored{name}"))).unwrap();
        assert!(stored == content(name, 300_000 + name * 1000), "stored{name}");
    }
    check_all(last.path(), 2);
    drop((away, last));
    cell.stop();
}

/// Stores forty files one after the other, each until it is acknowledged, and tells which were.
fn stores_in_the_background(top: &Path) -> Receiver<usize> {
    let (sender, receiver) = channel();
    let top = top.to_owned();
    std::thread::spawn(move || {
        for name in 0..40 {
            let path = top.join(format!("stored{name}"));
            until("a store is acknowledged", seconds(120), || {
                store(&path, &content(name, 300_000 + name * 1000)).ok()
            });
            if sender.send(name).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Bytes that a mount has read in all, and those of them that it read past the file server.
fn fetched(netns: &Netns, mount: &Mount) -> (u64, u64) {
    let said = command(netns, &["top", "--once", "--json", mount.path().to_str().unwrap()]);
    let reports: serde_json::Value = serde_json::from_str(&said).unwrap();
    let count = |name: &str| reports[0]["counts"][name].as_u64().unwrap();
    (count("fetched_bytes"), count("fetched_at_drives_bytes"))
}

/// The store, moto, does not verify signatures: that an address permits its range alone is not tested here.
#[test]
fn clients_fetch_what_is_in_a_bucket_from_its_store() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("bucket-addresses");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("bucket_addresses", seconds(400), move || unmount_below(&folder));
    let netns = Netns::fresh("andrew-addresses");
    let Some(bucket) = Bucket::in_namespace(&netns) else { return };
    let cell = Cell::serve(&netns, scratch.path(), &CellOptions::at("127.0.0.1", "rlidwka"));
    let store = format!("http://{}", bucket.proxy.address);
    let mount = |name: &str, more: &[&str]| Mount::new(&netns, CELL, "127.0.0.1", scratch.path(), name, more);
    let writer = mount("writer", &[]);
    bucket.add(&netns, &cell, scratch.path());
    let _ =
        command(&netns, &["vos", "setpath", "root.cell", "nasd", "--state", cell.state().to_str().unwrap()]);
    write_all(writer.path(), 0);

    let signed = Arc::new(AtomicUsize::new(0));
    let count = {
        let signed = signed.clone();
        move |fate: Fate| {
            let signed = signed.clone();
            bucket.proxy.choose(move |_, line: &str| {
                let is_signed = line.contains("X-Amz-SignedHeaders=host%3Brange&X-Amz-Signature=");
                signed.fetch_add(usize::from(is_signed), Ordering::SeqCst);
                if is_signed { fate } else { Fate::Served }
            });
        }
    };
    // All but what is in the index of the file server, and less than half a mebibyte of each file: what a reader waits for first
    // comes from the file server, which has it ready.
    let large: Vec<u64> = LENGTHS[2..].iter().map(|length| *length as u64).collect();
    let least = large.iter().sum::<u64>() - (large.len() as u64) * (512 << 10);
    let all: u64 = LENGTHS.iter().sum::<usize>() as u64;
    count(Fate::Served);
    let mut names = 0..;
    until("nearly everything is read in the bucket", seconds(200), || {
        // A file server that is slow to give the first layout is read itself.
        let reader = mount(&format!("reader{}", names.next()?), &["--data-path-store", &store]);
        signed.store(0, Ordering::SeqCst);
        check_all(reader.path(), 0);
        let (total, at_drives) = fetched(&netns, &reader);
        assert!(total >= all, "{total} bytes, directories among them");
        eprintln!("{at_drives} of {all} bytes from the bucket by {signed:?} signed requests");
        (at_drives >= least && signed.load(Ordering::SeqCst) > 0).then_some(())
    });

    // Without permission for a store without TLS it is not asked at all.
    signed.store(0, Ordering::SeqCst);
    let strict = mount("strict", &[]);
    check_all(strict.path(), 0);
    assert_eq!((fetched(&netns, &strict).1, signed.load(Ordering::SeqCst)), (0, 0));

    for (fate, name) in [
        (Fate::SlowDown, "slow"),
        (Fate::Forbidden, "refused"),
        (Fate::Cut, "cut"),
        (Fate::Wrong, "wrong"),
        (Fate::Lost, "lost"),
    ] {
        count(fate);
        let reader = mount(name, &["--data-path-store", &store]);
        check_all(reader.path(), 0);
        assert_eq!(fetched(&netns, &reader).1, 0, "{fate:?}");
    }
    drop((writer, strict));
    cell.stop();
}

#[test]
fn openafs_clients_read_and_store_what_is_in_a_bucket() {
    if !all_there(&[Need::Root, Need::Fuse, Need::OpenAfs]) {
        return;
    }
    let scratch = Scratch::new("openafs-bucket");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("openafs_bucket", seconds(400), move || unmount_below(&folder));
    let hosts = Hosts::around_our_cell(scratch.path(), 29, CELL);
    let (vice, netns) = (hosts.address(5), hosts.netns("vice"));
    let Some(bucket) = Bucket::in_namespace(&netns) else { return };
    let cell = Cell::serve(&netns, scratch.path(), &CellOptions::at(&vice, "rlidwka"));
    bucket.add(&netns, &cell, scratch.path());
    let theirs = scratch.folder("theirs");
    hosts.mount("cl1", &theirs);
    let venus = hosts.netns("venus");
    let ours = Mount::new(&venus, CELL, &vice, scratch.path(), "ours", &["--allow-other"]);
    let home = Home { state: cell.state(), cell: CELL, servers: &vice, site: &[], top: ours.path() };
    let residents = Residents::of_served(&venus, scratch.path(), &home);
    write_all(ours.path(), 0);
    let top = theirs.join(CELL);
    until_equal("the last file", &true, || top.join("file5").exists());
    check_all(&top, 0);
    write_all(&top, 1);
    until_equal("the last file", &true, || {
        fs::read(ours.path().join("file5")).is_ok_and(|bytes| bytes == content(6, LENGTHS[5]))
    });
    check_all(ours.path(), 1);
    residents.check();
    hosts.umount(&theirs);
}
