//! The way of a call to the server that has its path, and servers in this process.

use super::call::{Call, Failure, Refusal, Reply, ServerNumber};
use super::server::{Server, Work};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A client's connections to the servers, of which the first has the root.
pub(super) trait Connections {
    /// A call to one of them.
    ///
    /// # Errors
    /// Why there is no reply.
    fn call(&mut self, at: ServerNumber, path: &str, call: Call<'_>) -> Result<Reply, Refusal>;
}

/// Prefixes of path names, and the servers that a stub named for them. The longest prefix counts.
#[derive(Debug, Default)]
struct Prefixes(BTreeMap<String, ServerNumber>);

impl Prefixes {
    fn server(&self, path: &str) -> ServerNumber {
        let is_below = |prefix: &str| path == prefix || path.starts_with(&format!("{prefix}/"));
        let longest =
            self.0.iter().filter(|(prefix, _)| is_below(prefix)).max_by_key(|(prefix, _)| prefix.len());
        longest.map_or(ServerNumber(0), |(_, server)| *server)
    }
}

/// Most stubs on a way.
const STEPS_MAX: usize = 16;

/// Connections with what stubs have told.
pub(super) struct Routes<C> {
    pub(super) connections: C,
    prefixes: Prefixes,
}

impl<C: Connections> Routes<C> {
    pub(super) fn of(connections: C) -> Self {
        Self { connections, prefixes: Prefixes::default() }
    }

    /// A call to the server that a prefix hints at, and from there where stubs point.
    pub(super) fn call(&mut self, path: &str, call: Call<'_>) -> Result<Reply, Failure> {
        let failed = |why| Failure { call: call.name(), path: path.to_owned(), why };
        let mut at = self.prefixes.server(path);
        for _ in 0..STEPS_MAX {
            match self.connections.call(at, path, call) {
                Err(Refusal::Elsewhere { prefix_components, server }) => {
                    let prefix: Vec<&str> = path.split('/').take(prefix_components).collect();
                    self.prefixes.0.insert(prefix.join("/"), server);
                    at = server;
                }
                other => return other.map_err(failed),
            }
        }
        Err(failed(Refusal::Absent))
    }
}

/// Servers whose files are in directories, with a [`Server`] for each client at each of them in the place of its process.
pub(super) struct Cell {
    roots: Vec<PathBuf>,
    /// By number of client and server.
    processes: RefCell<BTreeMap<(u32, ServerNumber), Server>>,
}

impl Cell {
    /// Servers with their files in new directories.
    pub(super) fn in_directory(directory: &Path, servers: u32) -> Rc<Self> {
        let roots = (0..servers).map(|server| directory.join(format!("server{server}"))).collect();
        Rc::new(Self { roots, processes: RefCell::default() })
    }

    /// Connections of a client.
    pub(super) fn client(self: &Rc<Self>, number: u32) -> InProcess {
        InProcess(self.clone(), number)
    }

    /// Processes of all servers.
    pub(super) fn processes(&self) -> usize {
        self.processes.borrow().len()
    }

    /// What all servers did since this was asked last.
    pub(super) fn take_work(&self) -> Work {
        let mut all = Work::default();
        for server in self.processes.borrow_mut().values_mut() {
            all.add(&std::mem::take(&mut server.work));
        }
        all
    }

    /// Calls of a kind that a server had since its work was taken.
    #[cfg(test)]
    pub(super) fn calls(&self, at: u32, name: &str) -> u64 {
        let processes = self.processes.borrow();
        let there = processes.iter().filter(|((_, server), _)| server.0 == at);
        there.map(|(_, server)| server.work.calls.get(name).copied().unwrap_or_default()).sum()
    }
}

/// A client's connections to servers in this process.
pub(super) struct InProcess(Rc<Cell>, u32);

impl Connections for InProcess {
    fn call(&mut self, at: ServerNumber, path: &str, call: Call<'_>) -> Result<Reply, Refusal> {
        let root = self.0.roots.get(at.0 as usize).ok_or(Refusal::Absent)?;
        let mut processes = self.0.processes.borrow_mut();
        let process = match processes.entry((self.1, at)) {
            std::collections::btree_map::Entry::Occupied(there) => there.into_mut(),
            std::collections::btree_map::Entry::Vacant(none) => none.insert(Server::open(root)?),
        };
        process.call(path, call)
    }
}

/// Gives what is below a name of the root to another server: a stub at the first, and the directory at the other.
pub(super) fn place(
    operator: &mut Routes<impl Connections>,
    name: &str,
    at: ServerNumber,
) -> Result<(), Failure> {
    operator.call(name, Call::MakeStub(at))?;
    operator.call(name, Call::MakeDir).map(drop)
}
