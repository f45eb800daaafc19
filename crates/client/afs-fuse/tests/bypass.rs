//! Files that bypass the disk cache, under a real kernel: reads, mappings, and writers that turn them to caching.
//!
//! Must be run as root, with `/dev/fuse`; elsewhere it says so and passes, but not where `CI=true`.
#![allow(clippy::unwrap_used)] // A cell that cannot be made is a failed test.

#[allow(dead_code)] // Each test uses a part of it.
use crate::kit;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use kit::{Machine, MountedCell, can_mount};

/// More than one window of an open file.
const LENGTH: usize = 20 << 20;

/// A cell with two machines: what one writes, the other reads.
fn two_machines(passthrough: bool) -> (MountedCell, Machine, Machine) {
    let cell = MountedCell::new();
    let (writer, reader) = (cell.machine("writer", true), cell.machine("reader", passthrough));
    (cell, writer, reader)
}

/// Bytes that are different everywhere.
fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Bytes of disk that the cache of a machine takes for files.
fn cached(machine: &Machine) -> u64 {
    // Its name is that of the mount, without the suffix.
    of_folder(&machine.mount.with_extension(""))
}

fn of_folder(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let bytes = |entry: fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => of_folder(&entry.path()),
        Ok(meta) => meta.blocks() * 512,
        Err(_) => 0,
    };
    entries.map(bytes).sum()
}

/// A program that maps a file, and says on request whether its bytes are those of a position.
struct Mapping(Child);

const MAPS: &str = "import mmap, os, sys
f = os.open(sys.argv[1], os.O_RDONLY)
m = mmap.mmap(f, 0, prot=mmap.PROT_READ)
print('mapped', flush=True)
for line in sys.stdin:
    at, n = map(int, line.split())
    print(m[at:at + n].hex(), flush=True)
";

impl Mapping {
    fn of(path: &Path) -> Mapping {
        let mut child = Command::new("python3");
        child.args(["-c", MAPS]).arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut mapping = Mapping(child.spawn().unwrap());
        assert_eq!(mapping.line(), "mapped");
        mapping
    }

    fn line(&mut self) -> String {
        let mut line = Vec::new();
        let out = self.0.stdout.as_mut().unwrap();
        let mut byte = [0];
        while out.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }

    fn at(&mut self, at: usize, len: usize) -> String {
        writeln!(self.0.stdin.as_mut().unwrap(), "{at} {len}").unwrap();
        self.line()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn bypassing_files_are_read_and_mapped_and_take_no_room_in_the_cache() {
    if !can_mount() {
        return;
    }
    for passthrough in [true, false] {
        let (_cell, writer, reader) = two_machines(passthrough);
        let data = pattern(LENGTH, 1);
        fs::write(writer.mount.join("__film"), &data).unwrap();
        let ours = reader.mount.join("__film");
        let before = cached(&reader);
        assert!(fs::read(&ours).unwrap() == data);
        let film = File::open(&ours).unwrap();
        let mut mapping = Mapping::of(&ours);
        for n in 0..60 {
            let at = n * 7_919_111 % (LENGTH - 10_000);
            let mut bytes = vec![0; 10_000];
            film.read_exact_at(&mut bytes, at as u64).unwrap();
            assert!(bytes == data[at..at + 10_000], "at {at}");
            assert_eq!(mapping.at(at, 500), hex(&data[at..at + 500]), "at {at}");
        }
        let counters = reader.venus.counters();
        assert!(counters.bytes_bypassed >= LENGTH as u64 && counters.files_bypassed >= 1, "{counters:?}");
        let taken = cached(&reader) - before;
        assert!(taken <= 1 << 20, "{taken} bytes are in the cache");
        // A short one, too, which is otherwise whole in the cache when its open is over.
        fs::write(writer.mount.join("__short"), "short").unwrap();
        let bypassed = reader.venus.counters().bytes_bypassed;
        assert_eq!(fs::read_to_string(reader.mount.join("__short")).unwrap(), "short");
        assert_eq!(reader.venus.counters().bytes_bypassed, bypassed + 5);
    }
}

/// The kernel has read the file past the cache, and would go on to give it from its own pages.
#[test]
fn a_request_to_cache_a_file_fills_the_cache_at_the_next_read() {
    if !can_mount() {
        return;
    }
    for passthrough in [true, false] {
        let (cell, writer, reader) = two_machines(passthrough);
        let data = pattern(LENGTH, 3);
        fs::write(writer.mount.join("film"), &data).unwrap();
        let ours = reader.mount.join("film");
        let request = |word: &'static [u8]| {
            let venus = reader.venus.clone();
            cell.system.block_on(async move {
                let node = venus.walk(b"film", true).await.unwrap().node;
                venus.set_property(node, b"afs.bypass", word).await.unwrap();
                venus.property(node, b"afs.settled").await.unwrap();
                venus.forget(node, 1);
            });
        };
        request(b"on");
        let before = cached(&reader);
        assert!(fs::read(&ours).unwrap() == data);
        assert!(cached(&reader) < before + (1 << 20));
        request(b"off");
        assert!(fs::read(&ours).unwrap() == data);
        assert!(cached(&reader) >= before + LENGTH as u64, "with passthrough: {passthrough}");
    }
}

#[test]
fn a_writer_turns_what_is_open_and_mapped_to_caching() {
    if !can_mount() {
        return;
    }
    for passthrough in [true, false] {
        let (_cell, writer, reader) = two_machines(passthrough);
        for length in [3000, 3 << 20] {
            let (name, data) = (format!("__film{length}"), pattern(length, 2));
            let (theirs, ours) = (writer.mount.join(&name), reader.mount.join(&name));
            fs::write(&theirs, &data).unwrap();
            let film = File::open(&ours).unwrap();
            let mut mapping = Mapping::of(&ours);
            assert_eq!(mapping.at(0, 100), hex(&data[..100]));
            let mut bytes = [0; 100];
            film.read_exact_at(&mut bytes, 1000).unwrap();
            assert!(bytes[..] == data[1000..1100]);
            for round in 0..3u8 {
                let text = [b'a' + round; 50];
                let open = File::options().read(true).write(true).open(&ours).unwrap();
                open.write_all_at(&text, 20).unwrap();
                // Through each descriptor, and through the mapping, at once.
                film.read_exact_at(&mut bytes, 0).unwrap();
                assert!(bytes[..20] == data[..20] && bytes[20..70] == text && bytes[70..] == data[70..100]);
                assert_eq!(mapping.at(20, 50), hex(&text), "{length} {passthrough} round {round}");
                open.read_exact_at(&mut bytes, length as u64 - 100).unwrap();
                assert!(bytes[..] == data[length - 100..]);
                drop(open);
                assert!(fs::read(&theirs).unwrap()[20..70] == text, "{length} {passthrough} round {round}");
                assert!(fs::read(&ours).unwrap()[20..70] == text);
            }
        }
    }
}

#[test]
fn writes_of_other_machines_to_a_bypassing_file_are_seen_by_the_next_open() {
    if !can_mount() {
        return;
    }
    for passthrough in [true, false] {
        let (_cell, writer, reader) = two_machines(passthrough);
        let (theirs, ours) = (writer.mount.join("__log"), reader.mount.join("__log"));
        let mut held = Vec::new();
        for round in 0..20 {
            let text = format!("{round:04} line\n").repeat(1 + 9000 * (round % 3));
            fs::write(&theirs, &text).unwrap();
            let seen = fs::read_to_string(&ours).unwrap();
            assert!(seen == text, "round {round} of {passthrough}: {} of {}", seen.len(), text.len());
            let mapped = Mapping::of(&ours).at(0, 9);
            assert_eq!(mapped, hex(&text.as_bytes()[..9]), "round {round} of {passthrough}");
            // Some stay open.
            held.push(File::open(&ours).unwrap());
            if held.len() > 3 {
                held.remove(0);
            }
        }
    }
}
