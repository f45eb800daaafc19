//! Client of the prototype: whole files and status are cached, and every copy is checked before it is used.

use super::cache::{Cache, Copy};
use super::call::{Call, Failure, Refusal, Reply, Stamp};
use super::cell::{Connections, Routes};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Checks of copies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Checks {
    pub(super) calls: u64,
    pub(super) time: Duration,
}

/// A client.
pub(super) struct Venus<C> {
    pub(super) routes: Routes<C>,
    /// A directory for copies.
    directory: PathBuf,
    copies: u64,
    files: Cache<Copy>,
    statuses: Cache<()>,
    pub(super) checks: Checks,
}

impl<C: Connections> Venus<C> {
    /// A client whose copies are in a directory that is its own.
    pub(super) fn of(connections: C, directory: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(directory)?;
        Ok(Self {
            routes: Routes::of(connections),
            directory: directory.to_owned(),
            copies: 0,
            files: Cache::new(),
            statuses: Cache::new(),
            checks: Checks::default(),
        })
    }

    /// Opens a file to read it.
    pub(super) fn open(&mut self, path: &str) -> Result<File, Failure> {
        if let Some((stamp, _)) = self.files.get(path) {
            if self.is_valid(path, stamp)?
                && let Some((_, copy)) = self.files.get(path)
            {
                return copy.open().map_err(local("open", path));
            }
            self.files.remove(path);
        }
        let (copy, mut file) = self.new_copy(path)?;
        let stamp = self.status_of(path, Call::Fetch(&file))?;
        self.statuses.put(path, stamp, ());
        self.files.put(path, stamp, copy);
        file.rewind().map_err(local("open", path))?;
        Ok(file)
    }

    /// Reads a status (`stat`).
    pub(super) fn status(&mut self, path: &str) -> Result<(), Failure> {
        if let Some((stamp, ())) = self.statuses.get(path) {
            if self.is_valid(path, stamp)? {
                return Ok(());
            }
            self.statuses.remove(path);
        }
        let stamp = self.status_of(path, Call::GetFileStat)?;
        self.statuses.put(path, stamp, ());
        Ok(())
    }

    /// Writes a file anew, and stores it when it is closed. The copy stays.
    pub(super) fn store(&mut self, path: &str, data: &mut dyn Read) -> Result<(), Failure> {
        let (copy, mut file) = self.new_copy(path)?;
        io::copy(data, &mut file).map_err(local("write", path))?;
        let stamp = self.status_of(path, Call::Store(&file))?;
        self.statuses.put(path, stamp, ());
        self.files.put(path, stamp, copy);
        Ok(())
    }

    /// Changes a mode or a time.
    pub(super) fn set_status(&mut self, path: &str) -> Result<(), Failure> {
        let stamp = self.status_of(path, Call::SetFileStat)?;
        self.statuses.put(path, stamp, ());
        self.files.renew(path, stamp);
        Ok(())
    }

    /// Makes a directory.
    pub(super) fn make_dir(&mut self, path: &str) -> Result<(), Failure> {
        let stamp = self.status_of(path, Call::MakeDir)?;
        self.statuses.put(path, stamp, ());
        Ok(())
    }

    /// Names in a directory; they are not cached.
    pub(super) fn list(&mut self, path: &str) -> Result<Vec<String>, Failure> {
        match self.routes.call(path, Call::ListDir)? {
            Reply::Names(names) => Ok(names),
            _ => Err(unexpected("ListDir", path)),
        }
    }

    fn new_copy(&mut self, path: &str) -> Result<(Copy, File), Failure> {
        self.copies += 1;
        Copy::create(&self.directory, self.copies).map_err(local("create", path))
    }

    fn is_valid(&mut self, path: &str, stamp: Stamp) -> Result<bool, Failure> {
        let began = Instant::now();
        let reply = self.routes.call(path, Call::TestAuth(stamp))?;
        self.checks.calls += 1;
        self.checks.time += began.elapsed();
        Ok(reply == Reply::Valid(true))
    }

    /// A call whose reply is a version.
    fn status_of(&mut self, path: &str, call: Call<'_>) -> Result<Stamp, Failure> {
        match self.routes.call(path, call)? {
            Reply::Status(stamp) => Ok(stamp),
            _ => Err(unexpected(call.name(), path)),
        }
    }
}

/// A failure of the cache's own files.
fn local(call: &'static str, path: &str) -> impl FnOnce(io::Error) -> Failure {
    move |error| Failure { call, path: path.to_owned(), why: Refusal::Io(error) }
}

fn unexpected(call: &'static str, path: &str) -> Failure {
    local(call, path)(io::Error::new(io::ErrorKind::InvalidData, "the reply is of another call"))
}

#[cfg(test)]
#[path = "venus_tests.rs"]
mod tests;
