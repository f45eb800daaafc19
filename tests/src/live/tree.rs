//! Tree with one object of every kind that volumes hold.

use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::files::Pattern;
use super::manifest::{MOUNT_POINT, fs_do};

/// Creates the tree in an empty directory of a mount whose user is an administrator; the cell has a user alice. One
/// file has `blocks` blocks of 64 KiB.
///
/// # Panics
/// If anything cannot be created.
pub fn make(top: &Path, blocks: u64) {
    let made = files(top, blocks).and_then(|()| folders(top)).and_then(|()| names(&top.join("names")));
    made.unwrap_or_else(|error| panic!("{}: {error}", top.display()));
    access(top);
}

/// Changes one object of each kind in such a tree.
///
/// # Panics
/// If anything cannot be changed.
pub fn change(top: &Path, round: u64) {
    let changed = alter(top, round);
    changed.unwrap_or_else(|error| panic!("{}: {error}", top.display()));
    let deep = top.join("deep/er");
    let rights = if round.is_multiple_of(2) { "rl" } else { "rlik" };
    fs_do("setacl", &[deep.as_os_str(), OsStr::new("alice"), OsStr::new(rights)]);
}

fn files(top: &Path, blocks: u64) -> io::Result<()> {
    fs::write(top.join("empty"), "")?;
    fs::write(top.join("small"), "a few words\n")?;
    fs::write(top.join("mapped"), Pattern(3).block(0).get(..20_001).unwrap_or_default())?;
    Pattern(1).write(&top.join("medium"), 9)?;
    Pattern(2).write(&top.join("large"), blocks)?;
    let sparse = File::create(top.join("sparse"))?;
    sparse.write_all_at(b"here", 0)?;
    sparse.write_all_at(b"and far behind", 5_000_000)?;
    sparse.set_len(6_000_000)?;
    fs::hard_link(top.join("small"), top.join("another name"))?;
    // Owners as the mount shows them: 0 is the administrator with the mount's token, the others are not users of this
    // machine.
    for (name, mode, owner) in
        [("small", 0o640, 77), ("empty", 0o400, 4002), ("medium", 0o755, 0), ("mapped", 0o600, 32_000)]
    {
        fs::set_permissions(top.join(name), Permissions::from_mode(mode))?;
        chown(top.join(name), Some(owner), None)?;
    }
    for (name, when) in [("medium", 981_173_106), ("mapped", 1), ("small", 2_000_000_000)] {
        let when = SystemTime::UNIX_EPOCH + Duration::from_secs(when);
        File::open(top.join(name))?.set_times(FileTimes::new().set_modified(when))?;
    }
    Ok(())
}

fn folders(top: &Path) -> io::Result<()> {
    let deep = top.join("deep/er").join("and/deeper/".repeat(9));
    fs::create_dir_all(&deep)?;
    fs::write(deep.join("down there"), "hello\n")?;
    let many = top.join("many");
    fs::create_dir(&many)?;
    for n in 0..MANY {
        fs::write(many.join(format!("file number {n}")), format!("this is {n}\n"))?;
    }
    // Free slots in the middle of the directory's pages.
    (0..MANY).step_by(3).try_for_each(|n| fs::remove_file(many.join(format!("file number {n}"))))?;
    fs::create_dir_all(top.join("closed"))?;
    fs::set_permissions(top.join("closed"), Permissions::from_mode(0o700))?;
    fs::write(top.join("closed/secret"), "not for all\n")?;
    symlink("../small", top.join("many/relative"))?;
    symlink("/nowhere/at/all", top.join("dangling"))?;
    symlink("x/".repeat(500), top.join("long link"))?;
    fs_do("mkmount", &[top.join("closed").join(MOUNT_POINT).as_os_str(), OsStr::new("root.afs")]);
    Ok(())
}

fn names(folder: &Path) -> io::Result<()> {
    fs::create_dir(folder)?;
    let long = "l".repeat(255);
    for (number, name) in [
        "with space".as_bytes(),
        "-dash".as_bytes(),
        "gr\u{fc}n \u{65e5}\u{672c}".as_bytes(),
        b"latin \xfc\xe9",
        b"line\nand\ttab",
        b"quote\"'\\back",
        b"...",
        long.as_bytes(),
    ]
    .into_iter()
    .enumerate()
    {
        fs::write(folder.join(OsStr::from_bytes(name)), format!("{number}\n"))?;
    }
    fs::create_dir(folder.join(OsStr::from_bytes(b"folder \xff")))
}

fn access(top: &Path) {
    let set = |folder: &str, rest: &[&str]| {
        let folder = top.join(folder);
        let entries: Vec<&OsStr> = rest.iter().map(OsStr::new).collect();
        fs_do("setacl", &[&[folder.as_os_str()], entries.as_slice()].concat());
    };
    set("", &["system:anyuser", "rl"]);
    set("deep/er", &["alice", "rlidwk", "system:authuser", "l"]);
    set("many", &["alice", "rlidwka"]);
    set("closed", &["system:anyuser", "none"]);
    let names = top.join("names");
    let denied = ["alice", "w", "system:authuser", "da"].map(OsStr::new);
    fs_do("setacl", &[&[OsStr::new("--negative"), names.as_os_str()], denied.as_slice()].concat());
}

fn alter(top: &Path, round: u64) -> io::Result<()> {
    fs::write(top.join(format!("new in round {round}")), format!("round {round}\n"))?;
    fs::write(top.join("small"), format!("other words, round {round}\n"))?;
    File::options().write(true).open(top.join("large"))?.write_all_at(b"changed", 70_000 + round)?;
    fs::remove_file(top.join(format!("many/file number {}", 3 * round + 1)))?;
    fs::rename(
        top.join(format!("many/file number {}", 3 * round + 2)),
        top.join(format!("deep/er/from many {round}")),
    )?;
    fs::create_dir(top.join(format!("folder {round}")))?;
    symlink("many", top.join(format!("folder {round}/link {round}")))
}

/// Files in the folder with many files.
const MANY: u64 = 200;
