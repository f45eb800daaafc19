//! A process of a server of the prototype: what it does at each call of its client, and how much that was.

use super::call::{Call, Refusal, Reply, Stamp};
use super::tree::{Kind, Place, Tree, components};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

/// Work of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Work {
    /// Calls by name.
    pub(super) calls: BTreeMap<&'static str, u64>,
    /// Components of path names that were resolved.
    pub(super) components: u64,
    /// Reads of status files.
    pub(super) admin_reads: u64,
}

impl Work {
    pub(super) fn add(&mut self, more: &Self) {
        for (name, count) in &more.calls {
            *self.calls.entry(name).or_default() += count;
        }
        self.components += more.components;
        self.admin_reads += more.admin_reads;
    }
}

/// A process for one client. All that it shares with the others of its server is the files.
#[derive(Debug)]
pub(super) struct Server {
    tree: Tree,
    pub(super) work: Work,
}

impl Server {
    /// A process that serves the files in a directory.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        Ok(Self { tree: Tree::open(root)?, work: Work::default() })
    }

    /// A call of a client in this process.
    pub(super) fn call(&mut self, path: &str, call: Call<'_>) -> Result<Reply, Refusal> {
        match call {
            Call::Fetch(mut copy) => {
                let (stamp, length, data) = self.fetch(path)?;
                io::copy(&mut data.take(length), &mut copy)?;
                Ok(Reply::Status(stamp))
            }
            Call::Store(mut copy) => {
                copy.rewind()?;
                let length = copy.metadata()?.len();
                self.store(path, &mut copy, length).map(Reply::Status)
            }
            other => self.ask(path, other),
        }
    }

    /// Version, length and data of a file.
    pub(super) fn fetch(&mut self, path: &str) -> Result<(Stamp, u64, File), Refusal> {
        let place = self.begin(path, "Fetch")?;
        self.work.admin_reads += 1;
        match place.kind {
            Some(Kind::File) => place.data(),
            Some(Kind::Directory) => Err(Refusal::Kind),
            None => Err(Refusal::Absent),
        }
    }

    /// Takes a whole file.
    pub(super) fn store(&mut self, path: &str, data: &mut dyn Read, length: u64) -> Result<Stamp, Refusal> {
        let place = self.begin(path, "Store")?;
        match place.kind {
            None | Some(Kind::File) => place.store(data, length),
            Some(Kind::Directory) => Err(Refusal::Kind),
        }
    }

    /// A call without data.
    fn ask(&mut self, path: &str, call: Call<'_>) -> Result<Reply, Refusal> {
        if matches!(call, Call::ListDir) {
            let components = self.count(path, call.name())?;
            return self.tree.names(&components).map(Reply::Names);
        }
        let place = self.begin(path, call.name())?;
        match (call, place.kind) {
            (Call::MakeDir, None) => place.make_dir().map(Reply::Status),
            (Call::MakeStub(server), None) => place.make_stub(server).map(Reply::Status),
            (Call::MakeDir | Call::MakeStub(_), Some(_)) => Err(Refusal::Kind),
            (_, None) => Err(Refusal::Absent),
            (Call::SetFileStat, Some(_)) => place.change(None).map(Reply::Status),
            (Call::TestAuth(stamp), Some(_)) => Ok(Reply::Valid(self.stamp(&place)? == stamp)),
            _ => self.stamp(&place).map(Reply::Status),
        }
    }

    fn stamp(&mut self, place: &Place<'_>) -> Result<Stamp, Refusal> {
        self.work.admin_reads += 1;
        place.stamp()
    }

    /// Counts a call, and finds what it names.
    fn begin<'p>(&mut self, path: &'p str, call: &'static str) -> Result<Place<'p>, Refusal> {
        let components = self.count(path, call)?;
        self.tree.find(&components)
    }

    fn count<'p>(&mut self, path: &'p str, call: &'static str) -> Result<Vec<&'p str>, Refusal> {
        *self.work.calls.entry(call).or_default() += 1;
        let components = components(path)?;
        self.work.components += components.len() as u64;
        Ok(components)
    }
}
