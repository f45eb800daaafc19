//! Client of the prototype: whole files and status are cached, and every copy is checked before it is used.

use super::cache::Cache;
use super::cell::{Cell, Prefixes};
use super::server::{Call, ClientNumber, Refusal, Reply, Stamp};

/// A client.
#[derive(Debug)]
pub(super) struct Venus {
    number: ClientNumber,
    files: Cache,
    statuses: Cache,
    prefixes: Prefixes,
}

impl Venus {
    pub(super) fn of(number: u32) -> Self {
        Self {
            number: ClientNumber(number),
            files: Cache::default(),
            statuses: Cache::default(),
            prefixes: Prefixes::default(),
        }
    }

    /// Opens a file to read it.
    pub(super) fn open(&mut self, cell: &mut Cell, path: &str) -> Result<(), Refusal> {
        if let Some(stamp) = self.files.get(path) {
            if self.is_valid(cell, path, stamp)? {
                return Ok(());
            }
            self.files.remove(path);
        }
        let reply = self.call(cell, path, Call::Fetch)?;
        self.keep(path, &reply, true);
        Ok(())
    }

    /// Reads a status (`stat`).
    pub(super) fn status(&mut self, cell: &mut Cell, path: &str) -> Result<(), Refusal> {
        if let Some(stamp) = self.statuses.get(path) {
            if self.is_valid(cell, path, stamp)? {
                return Ok(());
            }
            self.statuses.remove(path);
        }
        let reply = self.call(cell, path, Call::GetFileStat)?;
        self.keep(path, &reply, false);
        Ok(())
    }

    /// Writes a file anew, and stores it when it is closed. The copy stays.
    pub(super) fn store(&mut self, cell: &mut Cell, path: &str) -> Result<(), Refusal> {
        let reply = self.call(cell, path, Call::Store)?;
        self.keep(path, &reply, true);
        Ok(())
    }

    /// Changes a mode or a time.
    pub(super) fn set_status(&mut self, cell: &mut Cell, path: &str) -> Result<(), Refusal> {
        let reply = self.call(cell, path, Call::SetFileStat)?;
        let has_data = self.files.get(path).is_some();
        self.keep(path, &reply, has_data);
        Ok(())
    }

    /// Makes a directory.
    pub(super) fn make_dir(&mut self, cell: &mut Cell, path: &str) -> Result<(), Refusal> {
        let reply = self.call(cell, path, Call::MakeDir)?;
        self.keep(path, &reply, false);
        Ok(())
    }

    /// Names in a directory; they are not cached.
    pub(super) fn list(&mut self, cell: &mut Cell, path: &str) -> Result<Vec<String>, Refusal> {
        match self.call(cell, path, Call::ListDir)? {
            Reply::Names(names) => Ok(names),
            _ => Err(Refusal::Kind),
        }
    }

    fn call(&mut self, cell: &mut Cell, path: &str, call: Call) -> Result<Reply, Refusal> {
        cell.call(self.number, &mut self.prefixes, path, call)
    }

    fn is_valid(&mut self, cell: &mut Cell, path: &str, stamp: Stamp) -> Result<bool, Refusal> {
        Ok(self.call(cell, path, Call::TestAuth(stamp))? == Reply::Valid(true))
    }

    fn keep(&mut self, path: &str, reply: &Reply, has_data: bool) {
        if let Reply::Status(stamp) = reply {
            self.statuses.put(path, *stamp);
            if has_data {
                self.files.put(path, *stamp);
            }
        }
    }
}

#[cfg(test)]
#[path = "venus_tests.rs"]
mod tests;
