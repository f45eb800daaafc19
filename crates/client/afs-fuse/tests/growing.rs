//! Tests of files that are open on one machine while another appends to them or rewrites them, under a real kernel, with passthrough (as root
//! mounts) and without (as a user mounts): `fstat`, `read`, mappings and `tail -f`.
//!
//! They need root and `/dev/fuse`; without these they say so and pass, but fail if `CI=true`.
#![allow(clippy::unwrap_used)] // A cell that cannot be made is a failed test.

#[allow(dead_code)] // Each test uses a part of it.
use crate::kit;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use afs_venus::{InvalidationSink, NodeId, TokenOwner};
use kit::{ALICE, BOB, Machine, MountedCell, can_mount};

/// Alice's machine and Bob's, each with a mount of its own, and a directory of Alice's that Bob may read and nobody else.
struct Scene {
    /// Stopped before the servers.
    machine: Machine,
    cell: MountedCell,
    theirs: PathBuf,
}

fn scene(passthrough: bool) -> Scene {
    let cell = MountedCell::new();
    let machine = cell.machine("reader", passthrough);
    cell.log_in(TokenOwner::Uid(ALICE), "alice");
    machine.log_in(TokenOwner::Uid(BOB), "bob");
    cell.sh(ALICE, "mkdir $M/home").unwrap();
    cell.set_acl("home", &[("alice", "rlidwka"), ("bob", "rl")]);
    let theirs = machine.mount.join("home/log");
    Scene { machine, cell, theirs }
}

impl Scene {
    fn alice(&self, script: &str) -> String {
        self.cell.sh(ALICE, &format!("F=$M/home/log; {script}")).unwrap()
    }
}

/// A program of Bob's. It reads commands from its input, one a line, and prints a line for each.
struct Program {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn start(command: &str, arguments: &[&str], file: &Path) -> Program {
        let mut program = Command::new(command);
        program.args(arguments).arg(file).uid(BOB).gid(BOB).current_dir("/");
        let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Program { child, input, output }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn ask(&mut self, what: &str) -> String {
        writeln!(self.input, "{what}").unwrap();
        self.line()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Has a file open all the time, and says what it sees: the length by `fstat`, what is read, what is mapped, as checksums.
const LOOKER: &str = "
import mmap, os, sys, zlib
f = os.open(sys.argv[1], os.O_RDONLY)
old = mmap.mmap(f, 0, prot=mmap.PROT_READ)
os.pread(f, 10, 0)
for line in sys.stdin:
    size = os.fstat(f).st_size
    read = os.pread(f, 1 << 21, 0)
    new = mmap.mmap(f, 0, prot=mmap.PROT_READ)
    told = [size, len(read), zlib.crc32(read), len(new), zlib.crc32(new[:]), read.count(0), zlib.crc32(old[:])]
    print(*told, os.stat(sys.argv[1]).st_size, flush=True)
";

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        (0..8).for_each(|_| crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 });
    }
    !crc
}

#[test]
fn an_open_file_has_all_bytes_of_its_length_while_another_machine_appends() {
    if !can_mount() {
        return;
    }
    for passthrough in [true, false] {
        let scene = scene(passthrough);
        scene.alice("head -c 5000 /dev/zero | tr '\\0' a > $F");
        let mut all = vec![b'a'; 5000];
        let first = crc(&all);
        let mut looker = Program::start("python3", &["-c", LOOKER], &scene.theirs);
        for round in 0..7 {
            let (size, sum) = (all.len(), crc(&all));
            let wanted = format!("{size} {size} {sum} {size} {sum} 0 {first} {size}");
            assert_eq!(looker.ask("look"), wanted, "round {round} of {passthrough}");
            scene.alice("head -c 50000 /dev/zero | tr '\\0' b >> $F");
            all.resize(size + 50_000, b'b');
        }
    }
}

#[test]
fn an_open_file_that_another_machine_rewrites_stays_as_it_was() {
    if !can_mount() {
        return;
    }
    for passthrough in [true, false] {
        for length in [9000, 5000, 100, 0] {
            let scene = scene(passthrough);
            scene.alice("head -c 5000 /dev/zero | tr '\\0' a > $F");
            let sum = crc(&[b'a'; 5000]);
            let mut looker = Program::start("python3", &["-c", LOOKER], &scene.theirs);
            let kept = format!("5000 5000 {sum} 5000 {sum} 0 {sum}");
            assert_eq!(looker.ask("look"), format!("{kept} 5000"));
            for version in ["c", "d"] {
                scene.alice(&format!("head -c {length} /dev/zero | tr '\\0' {version} > $F"));
                // The last number is that of the path: a new open gets the newest version.
                let said = looker.ask("look");
                assert_eq!(said, format!("{kept} {length}"), "{length} {version} of {passthrough}");
                let mut other = Program::start("cat", &[], &scene.theirs);
                let mut bytes = Vec::new();
                other.output.read_to_end(&mut bytes).unwrap();
                assert_eq!(bytes, version.repeat(length).into_bytes(), "{length} of {passthrough}");
            }
        }
    }
}

#[test]
fn programs_that_follow_a_file_print_what_another_machine_appends() {
    if !can_mount() {
        return;
    }
    // One that looks at the length, and one that only reads.
    let reads = "import sys, time\nf = open(sys.argv[1])\nwhile True:\n  line = f.readline()\n  \
                 if line: print(line, end='', flush=True)\n  else: time.sleep(0.05)";
    let followers: [(&str, &[&str]); 2] = [("tail", &["-n", "+1", "-f"]), ("python3", &["-c", reads])];
    for (command, arguments) in followers {
        for passthrough in [true, false] {
            let scene = scene(passthrough);
            scene.alice("echo line 0 > $F");
            let mut follower = Program::start(command, arguments, &scene.theirs);
            for round in 0..5 {
                assert_eq!(follower.line(), format!("line {round}"), "{command} of {passthrough}");
                scene.alice(&format!("echo line {} >> $F", round + 1));
            }
        }
    }
}

/// A reader. It prints the inode number of the file first. For each line of its input it opens the file, reads all of it in pieces of 500 bytes, and
/// prints three numbers: bytes read, how many of them are the line's letter, and the length that fstat(2) tells.
const PIECES: &str = "
import os, sys
print(os.stat(sys.argv[1]).st_ino, flush=True)
for line in sys.stdin:
    f = os.open(sys.argv[1], os.O_RDONLY)
    read = b''.join(iter(lambda: os.read(f, 500), b''))
    print(len(read), read.count(line[:1].encode()), os.fstat(f).st_size, flush=True)
    os.close(f)
";

/// The kernel drops attributes that come when it was just notified of the inode, and keeps the length that it had.
#[test]
fn a_version_is_read_with_its_length_however_often_the_kernel_is_notified() {
    if !can_mount() {
        return;
    }
    let scene = scene(false);
    scene.alice("printf first > $F");
    let mut reader = Program::start("python3", &["-c", PIECES], &scene.theirs);
    let number = reader.line();
    let node = NodeId(number.parse().unwrap());
    let is_over = AtomicBool::new(false);
    let notify = || {
        while !is_over.load(Ordering::Relaxed) {
            scene.machine.sink.attributes(node);
        }
    };
    let lengths = [9000, 100, 12_000, 700, 0, 5000, 4999, 5000].into_iter().cycle().take(24).enumerate();
    let mut look = |(round, length): (usize, usize)| {
        let letter = ["a", "b", "c"][round % 3];
        scene.alice(&format!("head -c {length} /dev/zero | tr '\\0' {letter} > $F"));
        (reader.ask(letter), format!("{length} {length} {length}"))
    };
    let seen: Vec<_> = std::thread::scope(|threads| {
        threads.spawn(notify);
        let seen = lengths.map(&mut look).collect();
        is_over.store(true, Ordering::Relaxed);
        seen
    });
    for (round, (said, wanted)) in seen.into_iter().enumerate() {
        assert_eq!(said, wanted, "round {round}");
    }
}
