//! Exercise of file operations: done through one mount, compared through another.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::files::{Pattern, names};
use super::process::{run, seconds};
use super::wait::until_equal;

/// Two views of one folder: the same mount twice, or two mounts of the cell.
#[derive(Clone, Debug)]
pub struct Views {
    /// Folder in which operations are done.
    pub here: PathBuf,
    /// Folder in which their effects are compared.
    pub there: PathBuf,
    /// Whether effects are visible at once: when `close`, or the call that made the change, has returned.
    pub at_once: bool,
}

impl Views {
    /// A folder through two mounts, of which one is OpenAFS's `afsd.fuse`, which stores some time after `close`.
    #[must_use]
    pub fn new(here: &Path, there: &Path) -> Self {
        Self { here: here.to_owned(), there: there.to_owned(), at_once: false }
    }

    /// A folder through two mounts of Andrew's.
    #[must_use]
    pub fn of_ours(here: &Path, there: &Path) -> Self {
        Self { at_once: true, ..Self::new(here, there) }
    }

    /// Compares the effects in `there`, at once or after a while.
    fn see<T: PartialEq + Debug>(&self, what: &str, wanted: &T, mut probe: impl FnMut() -> T) {
        if self.at_once {
            let seen = probe();
            assert!(seen == *wanted, "{what}: {seen:.200?} where {wanted:.200?} was expected");
        } else {
            until_equal(what, wanted, probe);
        }
    }

    fn expect(&self, name: &str, content: &[u8]) {
        let path = self.there.join(name);
        self.see(name, &Ok(content.to_vec()), || fs::read(&path).map_err(|error| error.to_string()));
    }

    fn expect_names(&self, folder: &str, wanted: &[&str]) {
        let path = self.there.join(folder);
        let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
        self.see(
            folder,
            &wanted,
            || {
                if path.is_dir() { names(&path) } else { vec!["no directory".to_owned()] }
            },
        );
    }
}

/// Runs all exercises in new folders, and removes them.
///
/// # Panics
/// If a comparison fails.
pub fn everything(views: &Views) {
    small_files(views);
    names_and_folders(views);
    modes_and_lengths(views);
    random_writes(views);
    shared_mapping(views);
    large_files(views);
}

/// Creates, reads, writes and appends.
///
/// # Panics
/// If a comparison fails.
pub fn small_files(views: &Views) {
    let file = views.here.join("small");
    fs::write(&file, "one\n").unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"one\n");
    views.expect("small", b"one\n");
    fs::write(&file, "another\n").unwrap();
    views.expect("small", b"another\n");
    let mut appended = OpenOptions::new().append(true).open(&file).unwrap();
    appended.write_all(b"and more\n").unwrap();
    drop(appended);
    views.expect("small", b"another\nand more\n");
    fs::write(views.here.join("empty"), "").unwrap();
    views.expect("empty", b"");
    let long = "n".repeat(255);
    fs::write(views.here.join(&long), "long").unwrap();
    views.expect(&long, b"long");
    for name in ["small", "empty", &long] {
        fs::remove_file(views.here.join(name)).unwrap();
    }
    views.expect_names("", &[]);
}

/// Directories, renames, hard links, removals.
///
/// # Panics
/// If a comparison fails.
pub fn names_and_folders(views: &Views) {
    let folder = views.here.join("folder");
    fs::create_dir(&folder).unwrap();
    fs::create_dir(folder.join("inner")).unwrap();
    fs::write(folder.join("a"), "a").unwrap();
    views.expect_names("folder", &["a", "inner"]);
    fs::rename(folder.join("a"), folder.join("b")).unwrap();
    views.expect_names("folder", &["b", "inner"]);
    fs::rename(folder.join("b"), folder.join("inner/c")).unwrap();
    views.expect_names("folder/inner", &["c"]);
    fs::hard_link(folder.join("inner/c"), folder.join("inner/d")).unwrap();
    views.expect("folder/inner/d", b"a");
    fs::write(folder.join("inner/d"), "through the link").unwrap();
    views.expect("folder/inner/c", b"through the link");
    fs::remove_file(folder.join("inner/c")).unwrap();
    views.expect_names("folder/inner", &["d"]);
    // A rename onto an existing name replaces it.
    fs::write(folder.join("inner/e"), "e").unwrap();
    fs::rename(folder.join("inner/e"), folder.join("inner/d")).unwrap();
    views.expect("folder/inner/d", b"e");
    let refused = fs::remove_dir(folder.join("inner")).unwrap_err();
    assert!(matches!(refused.raw_os_error(), Some(39 | 17)), "a full directory was removed: {refused}");
    fs::remove_file(folder.join("inner/d")).unwrap();
    fs::remove_dir(folder.join("inner")).unwrap();
    views.expect_names("folder", &[]);
    fs::remove_dir(&folder).unwrap();
    views.expect_names("", &[]);
}

/// chmod and truncate, in both directions.
///
/// # Panics
/// If a comparison fails.
pub fn modes_and_lengths(views: &Views) {
    let file = views.here.join("file");
    fs::write(&file, "0123456789").unwrap();
    views.expect("file", b"0123456789");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o751)).unwrap();
    let seen = views.there.join("file");
    views.see("mode", &0o751, || fs::metadata(&seen).map_or(0, |meta| meta.permissions().mode() & 0o7777));
    OpenOptions::new().write(true).open(&file).unwrap().set_len(4).unwrap();
    views.expect("file", b"0123");
    OpenOptions::new().write(true).open(&file).unwrap().set_len(6).unwrap();
    views.expect("file", b"0123\0\0");
    fs::remove_file(&file).unwrap();
    views.expect_names("", &[]);
}

/// Writes at several offsets of a file, some far beyond its end.
///
/// # Panics
/// If a comparison fails.
pub fn random_writes(views: &Views) {
    let path = views.here.join("random");
    let mut model = Vec::new();
    let file = File::create(&path).unwrap();
    let mut state = 7u64;
    for _ in 0..200 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = usize::try_from((state >> 33) % 1_500_000).unwrap();
        let data = vec![(state >> 20) as u8; usize::try_from((state >> 24) % 9000).unwrap() + 1];
        file.write_all_at(&data, at as u64).unwrap();
        if model.len() < at + data.len() {
            model.resize(at + data.len(), 0);
        }
        model[at..at + data.len()].copy_from_slice(&data);
    }
    drop(file);
    let mut read = File::open(&path).unwrap();
    let mut own = Vec::new();
    read.seek(SeekFrom::Start(0)).unwrap();
    read.read_to_end(&mut own).unwrap();
    assert!(own == model, "the writer reads something else than it wrote");
    drop(read);
    views.expect("random", &model);
    fs::remove_file(&path).unwrap();
    views.expect_names("", &[]);
}

/// Changes a file through a shared mapping.
///
/// # Panics
/// If a comparison fails.
pub fn shared_mapping(views: &Views) {
    let path = views.here.join("mapped");
    fs::write(&path, vec![b'.'; 10_000]).unwrap();
    let script = "import mmap,sys\nf=open(sys.argv[1],'r+b')\nm=mmap.mmap(f.fileno(),0)\nassert m[0:1]==b'.'\n\
                  m[5000:5006]=b'mapped'\nm.flush()\nm.close()\nf.close()\n";
    let mut python = Command::new("python3");
    python.args(["-c", script]).arg(&path);
    run(python, seconds(60));
    let mut wanted = vec![b'.'; 10_000];
    wanted[5000..5006].copy_from_slice(b"mapped");
    views.expect("mapped", &wanted);
    fs::remove_file(&path).unwrap();
    views.expect_names("", &[]);
}

/// Files of 8 MiB and 100 MiB.
///
/// # Panics
/// If a comparison fails.
pub fn large_files(views: &Views) {
    for (name, blocks) in [("large8", 128), ("large100", 1600)] {
        let pattern = Pattern(blocks);
        pattern.write(&views.here.join(name), blocks).unwrap();
        let seen = views.there.join(name);
        let length = blocks * super::files::BLOCK as u64;
        views.see(name, &length, || fs::metadata(&seen).map_or(0, |meta| meta.len()));
        // With a client that stores after `close`, the length may be visible some time before the bytes.
        views.see(name, &Ok(()), || {
            pattern.check(&seen, blocks).unwrap_or_else(|error| Err(error.to_string()))
        });
        fs::remove_file(views.here.join(name)).unwrap();
    }
    views.expect_names("", &[]);
}
