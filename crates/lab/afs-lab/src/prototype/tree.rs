//! Files of a server of the prototype: a directory that mirrors what it has, with the status of each entry in the shadow
//! directory `.admin` beside it. A stub directory is a symbolic link to the other server's number. Names are resolved from the root, a
//! component at a time, and no link is followed.

use super::call::{FILE_MAX, NAMES_MAX, PATH_MAX, Refusal, ServerNumber, Stamp};
use super::prepared::Prepared;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, RawDir};
use rustix::fs::{flock, fstat, open, openat, readlinkat, renameat, statat, symlinkat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Shadow directory with the status of a directory's entries.
pub(super) const ADMIN: &str = ".admin";
const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Mode of directories.
pub(super) const OWN: Mode = Mode::RWXU;
/// Most bytes of a status file.
const STATUS_MAX: u64 = 32;

/// The files.
#[derive(Debug)]
pub(super) struct Tree(OwnedFd);

/// What is under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Directory,
    File,
}

/// A name in a directory that was found.
pub(super) struct Place<'p> {
    directory: OwnedFd,
    name: &'p str,
    /// What is there, if anything is.
    pub(super) kind: Option<Kind>,
}

/// Components of a path name.
///
/// # Errors
/// It is too long, or one of them is none.
pub(super) fn components(path: &str) -> Result<Vec<&str>, Refusal> {
    if path.len() > PATH_MAX {
        return Err(Refusal::Long);
    }
    let all: Vec<&str> = if path.is_empty() { Vec::new() } else { path.split('/').collect() };
    let is_none =
        |name: &&str| matches!(*name, "" | "." | "..") || name.starts_with(ADMIN) || name.contains('\0');
    if all.iter().any(is_none) { Err(Refusal::Name) } else { Ok(all) }
}

impl Tree {
    /// Files in a directory, which is made.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(root.join(ADMIN))?;
        Ok(Self(open(root, OFlags::RDONLY | DIRECTORY, Mode::empty())?))
    }

    /// Finds a name from the root.
    pub(super) fn find<'p>(&self, components: &[&'p str]) -> Result<Place<'p>, Refusal> {
        let (name, parents) = components.split_last().ok_or(Refusal::Kind)?;
        let mut directory = self.0.try_clone()?;
        for (at, parent) in parents.iter().enumerate() {
            directory = match openat(&directory, *parent, OFlags::RDONLY | DIRECTORY, Mode::empty()) {
                Ok(below) => below,
                Err(Errno::NOENT) => return Err(Refusal::Absent),
                Err(Errno::NOTDIR | Errno::LOOP) => return Err(stub(&directory, parent, at + 1)),
                Err(other) => return Err(other.into()),
            };
        }
        let kind = match statat(&directory, *name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => None,
            found => match FileType::from_raw_mode(found?.st_mode) {
                FileType::Directory => Some(Kind::Directory),
                FileType::RegularFile => Some(Kind::File),
                _ => return Err(stub(&directory, name, components.len())),
            },
        };
        Ok(Place { directory, name, kind })
    }

    /// Names in a directory, in their order.
    pub(super) fn names(&self, components: &[&str]) -> Result<Vec<String>, Refusal> {
        if components.is_empty() {
            let again = openat(&self.0, ".", OFlags::RDONLY | DIRECTORY, Mode::empty())?;
            return names(&again);
        }
        let Place { directory, name, kind } = self.find(components)?;
        match kind {
            Some(Kind::Directory) => {
                names(&openat(&directory, name, OFlags::RDONLY | DIRECTORY, Mode::empty())?)
            }
            Some(Kind::File) => Err(Refusal::Kind),
            None => Err(Refusal::Absent),
        }
    }
}

/// The refusal for what is no directory: it may be a stub.
fn stub(directory: &OwnedFd, name: &str, prefix_components: usize) -> Refusal {
    let target = readlinkat(directory, name, Vec::new()).ok();
    let number = target.and_then(|target| target.to_str().ok()?.parse().ok());
    number.map_or(Refusal::Kind, |number| Refusal::Elsewhere {
        prefix_components,
        server: ServerNumber(number),
    })
}

fn names(directory: &OwnedFd) -> Result<Vec<String>, Refusal> {
    let (mut buffer, mut all, mut bytes) = ([MaybeUninit::uninit(); 8192], Vec::new(), 0);
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = String::from_utf8_lossy(entry.file_name().to_bytes()).into_owned();
        if matches!(&*name, "." | "..") || name.starts_with(ADMIN) {
            continue;
        }
        bytes += name.len() as u64 + 1;
        if bytes > NAMES_MAX {
            return Err(Refusal::Long);
        }
        all.push(name);
    }
    all.sort_unstable();
    Ok(all)
}

impl Place<'_> {
    /// Version of what is there, from its status file.
    pub(super) fn stamp(&self) -> Result<Stamp, Refusal> {
        let status = format!("{ADMIN}/{}", self.name);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match openat(&self.directory, &*status, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(Stamp::default()),
            Err(other) => return Err(other.into()),
        };
        let mut text = String::new();
        file.take(STATUS_MAX).read_to_string(&mut text)?;
        let broken = || io::Error::new(io::ErrorKind::InvalidData, "its status file is broken");
        Ok(Stamp(text.trim().parse().map_err(|_| broken())?))
    }

    /// Data of a file, with its length and the version that it has at least.
    pub(super) fn data(&self) -> Result<(Stamp, u64, File), Refusal> {
        // First the version: a store changes it last, so that a copy is never older than it says.
        let stamp = self.stamp()?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.directory, self.name, flags, Mode::empty())?;
        let length = fstat(&file)?.st_size.cast_unsigned();
        Ok((stamp, length, file.into()))
    }

    /// Replaces the data of a file, or makes one.
    pub(super) fn store(&self, data: &mut dyn Read, length: u64) -> Result<Stamp, Refusal> {
        if length > FILE_MAX {
            return Err(Refusal::Long);
        }
        let (prepared, mut file) = Prepared::file(&self.directory)?;
        if io::copy(&mut data.take(length), &mut file)? < length {
            return Err(Refusal::Io(io::ErrorKind::UnexpectedEof.into()));
        }
        self.change(Some(prepared))
    }

    /// Makes a directory with its shadow.
    pub(super) fn make_dir(&self) -> Result<Stamp, Refusal> {
        self.change(Some(Prepared::directory(&self.directory)?))
    }

    /// Makes a stub.
    pub(super) fn make_stub(&self, server: ServerNumber) -> Result<Stamp, Refusal> {
        match symlinkat(server.0.to_string(), &self.directory, self.name) {
            Err(Errno::EXIST) => Err(Refusal::Kind),
            made => self.change(made.map(|()| None)?),
        }
    }

    /// Puts what was prepared under the name, and makes the status file of the next version. Processes of a server take turns, by a
    /// lock of the shadow directory (the prototype had a lock server).
    pub(super) fn change(&self, prepared: Option<Prepared<'_>>) -> Result<Stamp, Refusal> {
        let admin = openat(&self.directory, ADMIN, OFlags::RDONLY | DIRECTORY, Mode::empty())?;
        flock(&admin, FlockOperation::LockExclusive)?;
        let stamp = Stamp(self.stamp()?.0 + 1);
        if let Some(prepared) = prepared {
            prepared.put(self.name)?;
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let status = openat(&admin, ADMIN, flags, Mode::RUSR | Mode::WUSR)?;
        File::from(status).write_all(stamp.0.to_string().as_bytes())?;
        renameat(&admin, ADMIN, &admin, self.name)?;
        Ok(stamp)
    }
}
