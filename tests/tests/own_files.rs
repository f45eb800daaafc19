//! One door for the files and directories of the product: what makes or changes one outside of `afs_own` is listed here with its reason.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::{Path, PathBuf};

/// What makes or opens a file for writing, or makes a directory, by the standard library.
const MADE_BY: [&str; 9] = [
    "create_dir(",
    "create_dir_all",
    "DirBuilder",
    "File::create",
    "File::options",
    "OpenOptions",
    "fs::write(",
    "fs::copy(",
    "mkdirat",
];

/// The door itself, the replacement of small files, and crates for tests and measurements.
const NOT_THE_PRODUCT: [&str; 5] = ["afs-own", "afs-files", "afs-lab", "afs-sim", "afs-testkit"];

/// The files that do so, and why they may.
const ALLOWED: [(&str, &str); 8] = [
    ("afs-fuse/src/error.rs", "the device /dev/fuse"),
    ("andrew/src/commands/lab/costs.rs", "a report, where the user wants it"),
    ("andrew/src/commands/login/obtain.rs", "the terminal"),
    ("andrew/src/commands/login/passphrase.rs", "the terminal"),
    ("andrew/src/commands/man.rs", "manual pages, which all may read, where the user wants them"),
    ("andrew/src/commands/up.rs", "the directory to mount on, where the user wants it"),
    ("andrew/src/commands/vos/dump_files.rs", "a device or a pipe that is there, for a dump"),
    ("andrew/src/detach.rs", "the device /dev/null"),
];

#[test]
fn what_is_kept_is_made_and_opened_through_one_door() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("crates");
    let mut found: Vec<String> = Vec::new();
    for entry in fs::read_dir(&crates).unwrap() {
        let package = entry.unwrap().path();
        if !NOT_THE_PRODUCT.iter().any(|name| package.ends_with(name)) {
            collect(&package.join("src"), &crates, &mut found);
        }
    }
    found.sort();
    let allowed: Vec<&str> = ALLOWED.iter().map(|(file, _)| *file).collect();
    assert_eq!(found, allowed, "use afs_own, or say here why not");
}

/// The files below a folder that do so outside of their tests.
fn collect(folder: &Path, top: &Path, found: &mut Vec<String>) {
    let entries: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    for path in entries {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let is_of_tests = stem.ends_with("tests") || stem == "test_kit";
        if path.is_dir() && !is_of_tests {
            collect(&path, top, found);
        } else if path.extension().is_some_and(|end| end == "rs") && !is_of_tests && makes_one(&path) {
            found.push(path.strip_prefix(top).unwrap().to_str().unwrap().to_owned());
        }
    }
}

fn makes_one(path: &Path) -> bool {
    let text = fs::read_to_string(path).unwrap();
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.into_iter().any(|line| MADE_BY.iter().any(|made_by| has_word(line, made_by)))
}

/// Whether a line has these characters, not at the end of a longer word.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| !line[..at].ends_with(|before: char| before.is_alphanumeric()))
}
