//! Requirements of a test on the machine, and what happens if they are not met.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A requirement that not every machine meets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// Root, for namespaces and disks.
    Root,
    /// `/dev/fuse` and the programs that mount.
    Fuse,
    /// OpenAFS, and the programs with which `tests/peers/openafs-cell` runs it.
    OpenAfs,
    /// An emulated machine with the kernel's own client.
    Guest,
    /// Python and tar, which keep what a file has when they copy it.
    Copiers,
    /// CPython's own tests, of the Python that Debian has.
    PythonTests,
    /// A C compiler and make.
    Compiler,
    /// Debian's source packages, and the programs that unpack them.
    Sources,
    /// etcd, its tool, and `openssl` for its certificates.
    Etcd,
}

/// Whether all of `needs` are met. If not, the test prints what is missing, and passes; if `CI=true` it fails.
#[must_use]
pub fn all_there(needs: &[Need]) -> bool {
    let missing: Vec<String> = needs.iter().filter_map(|need| need.missing()).collect();
    if missing.is_empty() {
        return true;
    }
    let text = missing.join("; ");
    assert!(std::env::var("CI").as_deref() != Ok("true"), "needed on CI: {text}");
    // Written past the test program's capture: a skipped test must not look like one that passed.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {text}");
    note_skipped(&text);
    false
}

/// Adds a line to the file that `ANDREW_SKIPPED` names: a runner that shows no output of tests that passed prints it at its end.
fn note_skipped(text: &str) {
    let Some(path) = std::env::var_os("ANDREW_SKIPPED") else { return };
    let thread = std::thread::current();
    let line = format!("{}: {text}\n", thread.name().unwrap_or("a test"));
    let file = File::options().create(true).append(true).open(path);
    let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
}

impl Need {
    fn missing(self) -> Option<String> {
        match self {
            Self::Root if is_root() => None,
            Self::Root => {
                Some("this test makes namespaces or mounts disks, and must be run as root".to_owned())
            }
            Self::Fuse => device("/dev/fuse").or_else(|| program("fusermount3")),
            Self::OpenAfs => ["python3", "gcc", "krb5kdc", "bosserver", "afsd.fuse", "rxdebug"]
                .iter()
                .find_map(|name| program(name)),
            Self::Guest => ["python3", "qemu-system-x86_64", "busybox", "keyctl", "cpio"]
                .iter()
                .find_map(|name| program(name)),
            Self::Copiers => program("python3").or_else(|| program("tar")),
            Self::PythonTests => python_tests(),
            Self::Compiler => program("gcc").or_else(|| program("make")),
            Self::Etcd => program("etcd").or_else(|| program("etcdctl")).or_else(|| program("openssl")),
            Self::Sources => program("apt-get").or_else(|| program("tar")).or_else(|| program("bzip2")),
        }
    }
}

/// A script of `tests/peers`.
#[must_use]
pub fn peer(name: &str) -> PathBuf {
    root().join("tests/peers").join(name)
}

/// The project's folder.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("/")).to_owned()
}

/// Folder for files that tests may use again: `target` of the project.
#[must_use]
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

fn python_tests() -> Option<String> {
    let found = Command::new("/usr/bin/python3").args(["-c", "import test.test_os"]).output();
    let is_there = found.is_ok_and(|output| output.status.success());
    (!is_there).then(|| "the tests of CPython are not installed (make deps)".to_owned())
}

fn device(path: &str) -> Option<String> {
    let opened = File::options().read(true).write(true).open(path);
    opened.err().map(|error| format!("{path} cannot be used: {error}"))
}

fn program(name: &str) -> Option<String> {
    (!is_installed(name)).then(|| format!("{name} is not installed (make deps)"))
}

/// Whether a program is on the machine.
#[must_use]
pub fn is_installed(name: &str) -> bool {
    super::netns::PATH.split(':').any(|folder| Path::new(folder).join(name).exists())
}

pub(super) fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
