//! The kernel's mount table: Andrew's mounts, and in what file system a path is.

use crate::error::{CellError, CellResult};
use serde::Serialize;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// File system type of Andrew's mounts in the kernel's mount table.
pub const FILE_SYSTEM: &str = "fuse.andrew";

/// One mount of Andrew's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mount {
    /// The mount point.
    pub directory: PathBuf,
    /// The source, as given at mount time: the cell.
    pub source: String,
    /// Device number of the file system, `MAJOR:MINOR`, which is the same in every mount namespace.
    pub device: String,
}

/// All mounts of Andrew's that are visible to this process, the latest last.
///
/// # Errors
/// `/proc` is not mounted.
pub fn list() -> CellResult<Vec<Mount>> {
    of_process("self").map_err(CellError::MountTable)
}

/// Processes in other mount namespaces that have a mount, given by its device number: number and name of one process of
/// each namespace. Processes that this user may not inspect are skipped.
#[must_use]
pub fn holders(device: &str) -> Vec<(u32, String)> {
    let mut namespaces = vec![namespace("self")];
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some((name, pid)) = name.to_str().and_then(|name| Some((name, name.parse().ok()?))) else {
            continue;
        };
        let namespace = namespace(name);
        if namespace.is_none() || namespaces.contains(&namespace) {
            continue;
        }
        namespaces.push(namespace);
        if of_process(name).unwrap_or_default().iter().any(|mount| mount.device == device) {
            let command = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            found.push((pid, command.trim_end().to_owned()));
        }
    }
    found
}

fn namespace(process: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/ns/mnt")).ok()
}

fn of_process(process: &str) -> std::io::Result<Vec<Mount>> {
    Ok(table(process)?.into_iter().filter_map(Line::ours).collect())
}

fn table(process: &str) -> std::io::Result<Vec<Line>> {
    let table = fs::read(format!("/proc/{process}/mountinfo"))?;
    Ok(table.split(|b| *b == b'\n').filter_map(parse).collect())
}

/// The mount of Andrew's that contains `path`, if any: the one with the longest directory.
///
/// # Errors
/// `/proc` is not mounted.
pub fn containing(path: &Path) -> CellResult<Option<Mount>> {
    let inside = list()?.into_iter().filter(|m| path.starts_with(&m.directory));
    Ok(inside.max_by_key(|m| m.directory.as_os_str().len()))
}

/// Type and source of the file system that contains `path`, as `nfs4` and `server:/export`; `None` if no mount is seen there.
///
/// # Errors
/// `/proc` is not mounted.
pub fn file_system(path: &Path) -> CellResult<Option<(String, String)>> {
    let lines = table("self").map_err(CellError::MountTable)?;
    let inside = lines.into_iter().filter(|line| path.starts_with(&line.mount.directory));
    // Of several on one directory the last hides the others.
    let seen = inside.max_by_key(|line| line.mount.directory.as_os_str().len());
    Ok(seen.map(|line| (line.kind, line.mount.source)))
}

/// Longest name in a directory of AFS, in bytes.
const NAME_LEN_MAX: usize = 255;

/// Whether the program that served a mount has died: then the kernel itself replies. A mount that is only slow is not
/// dead.
#[must_use]
pub fn is_dead(directory: &Path) -> bool {
    // The kernel keeps no answer for a name that is too long, and the program refuses it without its servers.
    let asked = rustix::fs::stat(directory.join("x".repeat(NAME_LEN_MAX + 1)));
    // The second while it is dying.
    asked.is_err_and(|error| [rustix::io::Errno::NOTCONN, rustix::io::Errno::CONNABORTED].contains(&error))
}

/// A mount of any file system.
struct Line {
    kind: String,
    mount: Mount,
}

impl Line {
    fn ours(self) -> Option<Mount> {
        (self.kind == FILE_SYSTEM).then_some(self.mount)
    }
}

/// One line of mountinfo: numbers, root, directory, options, optional fields, `-`, type, source.
fn parse(line: &[u8]) -> Option<Line> {
    let fields: Vec<&[u8]> = line.split(|b| *b == b' ').collect();
    let dash = fields.iter().position(|f| *f == b"-")?;
    let kind = String::from_utf8_lossy(fields.get(dash + 1)?).into_owned();
    let directory = PathBuf::from(OsString::from_vec(unescape(fields.get(4)?)));
    let source = String::from_utf8_lossy(&unescape(fields.get(dash + 2)?)).into_owned();
    let device = String::from_utf8_lossy(fields.get(2)?).into_owned();
    Some(Line { kind, mount: Mount { directory, source, device } })
}

/// Decodes the three octal digits as which the kernel writes blanks, tabs, newlines and backslashes.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        let octal = tail.get(..3).filter(|_| *first == b'\\').and_then(octal);
        out.push(octal.unwrap_or(*first));
        rest = if octal.is_some() { &tail[3..] } else { tail };
    }
    out
}

fn octal(digits: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(digits).ok()?;
    u8::from_str_radix(text, 8).ok()
}

/// Makes a path absolute without accessing what it names: the file system there may hang.
///
/// # Errors
/// The current directory has been removed.
pub fn absolute(path: &Path) -> CellResult<PathBuf> {
    let path = std::path::absolute(path).map_err(|error| CellError::Path { path: path.to_owned(), error })?;
    let trimmed = path.as_os_str().as_bytes();
    let trimmed = trimmed.strip_suffix(b"/").filter(|p| !p.is_empty()).unwrap_or(trimmed);
    Ok(PathBuf::from(OsString::from_vec(trimmed.to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_ours_and_undoes_escapes() {
        let line = br"36 35 98:0 / /home/a\040b rw,noatime shared:1 - fuse.andrew andrew.local rw";
        let mount = parse(line).and_then(Line::ours).unwrap();
        assert_eq!((mount.directory.to_str(), &*mount.source), (Some("/home/a b"), "andrew.local"));
        assert_eq!(mount.device, "98:0");
    }

    #[test]
    fn the_file_system_of_a_path_is_that_of_its_nearest_mount() {
        let (kind, _) = file_system(Path::new("/proc/self")).unwrap().unwrap();
        assert_eq!(kind, "proc");
        assert_ne!(file_system(Path::new("/")).unwrap().map(|(kind, _)| kind), Some(kind));
    }

    #[test]
    fn others_and_damaged_lines_are_passed_over() {
        let other = parse(b"36 35 98:0 / /mnt rw - ext4 /dev/sda rw").unwrap();
        assert_eq!(other.kind, "ext4");
        assert_eq!(other.ours(), None);
        assert!(parse(b"36 35 -").is_none());
        assert!(parse(b"").is_none());
        assert_eq!(unescape(br"a\9zz\04"), br"a\9zz\04");
    }
}
