//! Data whose store failed survives the end of a mount: taken up by the next one, stored by the same rules, never lost.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use afs_venus::{DiskCache, ErrorKind, OpenFlags, TokenOwner, Unsaved, Unsettled};
use bytes::Bytes;
use common::{Cell, Client, SMALL_KIB, pattern};
use tempfile::TempDir;

const ALICE: u32 = 1001;
const BOB: u32 = 1002;
const ROOM: u64 = 16 << 20;

/// A cell, and a machine with its cache on a disk, whose process ends and begins again.
struct Place {
    dir: TempDir,
    cell: Cell,
    /// Starts so far.
    starts: std::cell::Cell<u8>,
}

impl Place {
    fn new(seed: u64) -> Place {
        Place { dir: tempfile::tempdir().unwrap(), cell: Cell::new(seed), starts: 0.into() }
    }

    /// The next process, which has the cache alone.
    fn start(&self, boot: &str) -> Client {
        self.starts.set(self.starts.get() + 1);
        let cache = DiskCache::open(self.dir.path(), ROOM, boot).unwrap();
        let client = self.cell.client_with(self.starts.get(), Arc::new(cache));
        self.wait(5);
        client
    }

    fn kill(&self, client: Client) {
        self.cell.sim.crash(client.node);
        drop(client);
        self.wait(1);
    }

    fn wait(&self, seconds: u64) {
        self.cell.sim.run_for(Duration::from_secs(seconds));
    }

    fn unsaved(&self) -> PathBuf {
        self.dir.path().join("unsaved")
    }

    fn cut(&self, client: &Client) {
        self.cell.sim.world().cut(client.node, self.cell.server);
    }

    /// What another machine reads.
    fn elsewhere(&self, path: &'static str) -> Vec<u8> {
        let other = self.cell.client(50);
        let here = other.clone();
        let read = self.cell.on(&other, async move { here.get(path).await.unwrap() });
        self.kill(other);
        read
    }

    fn put_elsewhere(&self, path: &'static str, data: &'static [u8]) {
        let other = self.cell.client(51);
        let here = other.clone();
        self.cell.on(&other, async move { here.put(path, data).await.unwrap() });
        self.kill(other);
    }
}

fn of(client: &Client, uid: u32) -> Vec<Unsaved> {
    client.venus.unsaved(TokenOwner::Uid(uid), 0)
}

fn names(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().count()
}

/// A process whose user has written a file that the server, out of reach, did not take.
fn failed(place: &Place) -> Client {
    let a = place.start("boot");
    let here = a.clone();
    place.cell.on(&a, async move { here.user(ALICE).put("file", b"before").await.unwrap() });
    place.cut(&a);
    let here = a.clone();
    place.cell.on(&a, async move { here.user(ALICE).put("file", b"precious").await.unwrap_err() });
    a
}

#[test]
fn data_whose_store_failed_is_stored_by_the_next_mount_however_this_one_ended() {
    for (seed, boot, in_order) in
        [(1, "boot", false), (2, "next boot", false), (3, "boot", true), (4, "next", true)]
    {
        let place = Place::new(seed);
        let a = failed(&place);
        assert!(of(&a, ALICE)[0].is_kept);
        if in_order {
            let here = a.clone();
            let stopped = place.cell.on(&a, async move { here.venus.shut_down().await });
            assert_eq!(stopped.unwrap_err().kind, ErrorKind::ServerUnreachable);
            assert!(of(&a, ALICE)[0].is_kept);
        }
        place.kill(a);
        assert_eq!(place.elsewhere("file"), b"before");
        let again = place.start(boot);
        assert_eq!(place.elsewhere("file"), b"precious", "{boot} {in_order}");
        assert_eq!((of(&again, 0), names(&place.unsaved())), (vec![], 0));
        let here = again.clone();
        assert_eq!(place.cell.on(&again, async move { here.get("file").await.unwrap() }), b"precious");
    }
}

#[test]
fn kept_data_is_told_to_its_user_with_the_reason_and_read_here_until_it_is_stored() {
    let place = Place::new(5);
    let a = place.start("boot");
    let data = pattern((SMALL_KIB as usize + 1100) << 10, 1);
    let (here, sent) = (a.clone(), data.clone());
    place.cell.on(&a, async move {
        here.mount("small", "#small.").await.unwrap();
        here.user(ALICE).put("small/file", &sent).await.unwrap_err();
    });
    let before = of(&a, ALICE);
    place.kill(a);
    let again = place.start("next boot");
    let here = again.clone();
    let read = place.cell.on(&again, async move { here.get("small/file").await.unwrap() });
    assert!(read == data);
    let told = of(&again, ALICE);
    assert_eq!((told.len(), of(&again, BOB).len(), of(&again, 0).len()), (1, 0, 1));
    assert!(told[0].error.as_ref().unwrap().contains("the volume's quota is used up"), "{told:?}");
    assert_eq!((told[0].since, told[0].length_bytes), (before[0].since, before[0].length_bytes));
    assert!(told[0].is_kept && !told[0].is_set_aside && told[0].missing_bytes == 0, "{told:?}");
    let (here, number) = (again.clone(), told[0].number);
    place.cell.on(&again, async move {
        assert_eq!(here.venus.discard_unsaved(TokenOwner::Uid(BOB), number).await, Err(Unsettled::Gone));
        here.venus.discard_unsaved(TokenOwner::Uid(ALICE), number).await.unwrap();
    });
    place.kill(again);
    let last = place.start("boot after that");
    assert_eq!(of(&last, 0), [], "what was discarded does not come back");
}

#[test]
fn what_others_have_stored_since_is_not_overwritten_by_the_next_mount() {
    let place = Place::new(6);
    let a = failed(&place);
    place.kill(a);
    place.put_elsewhere("file", b"newer");
    let again = place.start("next boot");
    assert_eq!(place.elsewhere("file"), b"newer");
    let told = of(&again, ALICE);
    assert!(told[0].is_set_aside && told[0].is_kept, "{told:?}");
    place.kill(again);
    let last = place.start("boot after that");
    let told = of(&last, ALICE);
    assert!(told.len() == 1 && told[0].is_set_aside, "{told:?}");
    let (here, number) = (last.clone(), told[0].number);
    let piece = place
        .cell
        .on(&last, async move { here.venus.unsaved_piece(TokenOwner::Uid(ALICE), number, 0).await.unwrap() });
    assert_eq!(piece.bytes, b"precious");
}

#[test]
fn another_file_of_the_same_number_and_version_is_not_overwritten() {
    // A cell that was made anew under the same name gives its numbers again.
    let place = Place::new(7);
    let a = failed(&place);
    place.kill(a);
    let other = Place { dir: place.dir, cell: Cell::new(7), starts: 10.into() };
    other.wait(3600);
    other.put_elsewhere("file", b"others");
    let again = other.start("boot");
    assert_eq!(other.elsewhere("file"), b"others");
    let told = of(&again, ALICE);
    assert!(told[0].is_set_aside, "{told:?}");
}

#[test]
fn a_store_of_a_user_with_a_token_waits_for_the_login() {
    let place = Place::new(8);
    place.cell.users.add("alice", 11);
    let a = place.start("boot");
    let here = a.clone();
    place.cell.on(&a, async move {
        here.log_in(ALICE, "alice").await;
        here.user(ALICE).put("file", b"before").await.unwrap();
    });
    place.cut(&a);
    let here = a.clone();
    place.cell.on(&a, async move { here.user(ALICE).put("file", b"precious").await.unwrap_err() });
    place.kill(a);
    // Everybody may write there, but not as somebody else.
    let again = place.start("next boot");
    assert_eq!(place.elsewhere("file"), b"before");
    let told = of(&again, ALICE);
    assert!(told[0].advice.contains("log in") && !told[0].is_set_aside, "{told:?}");
    let here = again.clone();
    place.cell.on(&again, async move { here.log_in(ALICE, "alice").await });
    place.wait(5);
    assert_eq!(place.elsewhere("file"), b"precious");
    assert_eq!(of(&again, 0), []);
}

#[test]
fn data_that_a_program_was_changing_is_set_aside_and_not_stored() {
    let place = Place::new(9);
    let a = failed(&place);
    let here = a.clone();
    place.cell.on(&a, async move {
        let alice = here.user(ALICE);
        let handle = alice.open("file", OpenFlags::READ_WRITE).await.unwrap();
        alice.venus.write(handle, 0, Bytes::from_static(b"half")).await.unwrap();
    });
    place.kill(a);
    let again = place.start("next boot");
    assert_eq!(place.elsewhere("file"), b"before");
    let told = of(&again, ALICE);
    assert!(told[0].is_set_aside && told[0].is_kept, "{told:?}");
}

#[test]
fn a_damaged_cache_is_an_error_and_stores_nothing_wrong() {
    type Harm = fn(&Path, &Path);
    let harms: [(Harm, bool); 6] = [
        (|data, _| fs::write(data, b"precioux").unwrap(), true),
        (|data, _| fs::write(data, b"prec").unwrap(), true),
        (|data, _| fs::remove_file(data).unwrap(), false),
        (|_, record| fs::write(record, b"no record").unwrap(), false),
        (|_, record| fs::write(record, b"").unwrap(), false),
        (
            |_, record| {
                let mut bytes = fs::read(record).unwrap();
                bytes[40] ^= 1;
                fs::write(record, bytes).unwrap();
            },
            false,
        ),
    ];
    for (n, (harm, is_told)) in harms.into_iter().enumerate() {
        let place = Place::new(20 + n as u64);
        let a = failed(&place);
        place.kill(a);
        let find = |is: fn(&str) -> bool| {
            let all = fs::read_dir(place.unsaved()).unwrap().map(|entry| entry.unwrap().path());
            all.into_iter().find(|path| is(path.to_str().unwrap())).unwrap()
        };
        let record = find(|name| name.ends_with(".record"));
        harm(&find(|name| !name.ends_with(".record")), &record);
        let again = place.start("next boot");
        assert_eq!(place.elsewhere("file"), b"before", "{n}");
        let told = of(&again, ALICE);
        assert_eq!(told.iter().filter(|it| it.is_set_aside).count(), usize::from(is_told), "{n}: {told:?}");
        assert!(is_told || record.exists(), "{n}: what cannot be read is not deleted");
    }
}

#[test]
fn what_is_another_cells_stays_in_the_cache_untouched() {
    let place = Place::new(10);
    let a = failed(&place);
    place.kill(a);
    for entry in fs::read_dir(place.unsaved()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some() {
            let mut bytes = fs::read(&path).unwrap();
            let at = bytes.windows(9).position(|it| it == b"test.cell").unwrap();
            bytes[at..at + 9].copy_from_slice(b"else.cell");
            let sum = crc32c::crc32c(&bytes[8..]).to_be_bytes();
            bytes[4..8].copy_from_slice(&sum);
            fs::write(&path, bytes).unwrap();
        }
    }
    let again = place.start("next boot");
    assert_eq!((of(&again, 0), names(&place.unsaved())), (vec![], 2));
    assert_eq!(place.elsewhere("file"), b"before");
}

#[test]
fn a_store_that_succeeds_leaves_nothing_behind() {
    let place = Place::new(11);
    let a = failed(&place);
    assert_eq!(names(&place.unsaved()), 2);
    place.cell.sim.world().mend(a.node, place.cell.server);
    let (here, number) = (a.clone(), of(&a, ALICE)[0].number);
    place.cell.on(&a, async move { here.venus.retry_unsaved(TokenOwner::Uid(ALICE), number).await.unwrap() });
    place.wait(1);
    assert_eq!(names(&place.unsaved()), 0);
    assert_eq!(place.elsewhere("file"), b"precious");
}
