//! Processes that use a mount: their open files and working directories, from `/proc`.

use serde::Serialize;
use std::fmt;
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};

/// Most uses returned.
const TOLD_MAX: usize = 1000;
/// Most uses listed in a line.
const SHOWN_MAX: usize = 4;

/// One use of a mount.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct MountUse {
    /// The file or directory.
    #[serde(serialize_with = "crate::output::path")]
    pub path: PathBuf,
    /// The process.
    pub pid: u32,
    /// Name of its program.
    pub program: String,
    /// Whether the process may write through this descriptor.
    pub writing: bool,
}

/// Uses of the mount at a directory, sorted, at most 1000. Processes that this user may not inspect are skipped, and so
/// are memory mappings.
#[must_use]
pub fn of(directory: &Path) -> Vec<MountUse> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut found: Vec<MountUse> = processes.flat_map(|process| of_process(&process, directory)).collect();
    found.sort();
    found.dedup();
    found.truncate(TOLD_MAX);
    found
}

fn of_process(process: &DirEntry, directory: &Path) -> Vec<MountUse> {
    let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()) else {
        return Vec::new();
    };
    let root = process.path();
    let descriptors = fs::read_dir(root.join("fd")).into_iter().flatten().flatten();
    let places = descriptors.map(|fd| {
        let info = root.join("fdinfo").join(fd.file_name());
        (fd.path(), Some(info))
    });
    let mut found = Vec::new();
    for (link, info) in places.chain([(root.join("cwd"), None)]) {
        let Ok(path) = fs::read_link(link) else { continue };
        if path.starts_with(directory) {
            let writing = info.is_some_and(|info| is_for_writing(&info));
            found.push(MountUse { path, pid, program: String::new(), writing });
        }
    }
    if !found.is_empty() {
        let program = fs::read_to_string(root.join("comm")).unwrap_or_default().trim_end().to_owned();
        found.iter_mut().for_each(|one| one.program.clone_from(&program));
    }
    found
}

/// Whether a descriptor is open for writing: the line `flags:` has the flags of open(2) in octal; the last two bits are
/// the access mode.
fn is_for_writing(info: &Path) -> bool {
    let text = fs::read_to_string(info).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    flags.and_then(|digits| u32::from_str_radix(digits.trim(), 8).ok()).is_some_and(|flags| flags & 3 != 0)
}

/// Uses formatted as one line.
pub struct Shown<'a>(pub &'a [MountUse]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, one) in self.0.iter().take(SHOWN_MAX).enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{} by {} (process {})", one.path.display(), one.program, one.pid)?;
        }
        match self.0.len().checked_sub(SHOWN_MAX) {
            Some(more) if more > 0 => write!(f, " and {more} more"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_files_are_found_with_who_has_them_and_how() {
        let dir = tempfile::tempdir().unwrap();
        let (written, read) = (dir.path().join("written"), dir.path().join("read"));
        let writer = fs::File::create(&written).unwrap();
        fs::write(&read, "").unwrap();
        let reader = fs::File::open(&read).unwrap();
        let found = of(dir.path());
        let seen: Vec<_> = found.iter().map(|one| (one.path.clone(), one.pid, one.writing)).collect();
        let pid = std::process::id();
        assert_eq!(seen, [(read, pid, false), (written.clone(), pid, true)]);
        let shown = Shown(&found[1..]).to_string();
        assert!(shown.starts_with(&format!("{} by ", written.display())), "{shown}");
        drop((writer, reader));
        assert!(of(dir.path()).is_empty());
    }
}
