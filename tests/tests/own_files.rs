//! One door for the files and directories of the product: what makes or changes one outside of `afs_own` is listed here with its reason.

use andrew_tests::sources::files_with;

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

/// The door, and the replacement of small files.
const DOORS: [&str; 2] = ["afs-own", "afs-files"];

/// The files that do so, and why they may.
const ALLOWED: [(&str, &str); 8] = [
    ("afs-fuse/src/error.rs", "the device /dev/fuse"),
    ("andrew/src/commands/login/obtain.rs", "the terminal"),
    ("andrew/src/commands/login/passphrase.rs", "the terminal"),
    ("andrew/src/commands/man.rs", "manual pages, which all may read, where the user wants them"),
    ("andrew/src/commands/up.rs", "the directory to mount on, where the user wants it"),
    ("andrew/src/commands/user/add.rs", "the directory of homes, in a mount"),
    ("andrew/src/commands/vos/dump_files.rs", "a device or a pipe that is there, for a dump"),
    ("andrew/src/detach.rs", "the device /dev/null"),
];

#[test]
fn what_is_kept_is_made_and_opened_through_one_door() {
    let found = files_with(&DOORS, |code| {
        let mut lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        lines.any(|line| MADE_BY.iter().any(|made_by| has_word(line, made_by)))
    });
    let allowed: Vec<&str> = ALLOWED.iter().map(|(file, _)| *file).collect();
    assert_eq!(found, allowed, "use afs_own, or say here why not");
}

/// Whether a line has these characters, not at the end of a longer word.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| !line[..at].ends_with(|before: char| before.is_alphanumeric()))
}
