//! Servers of the prototype, and the way of a call to the one that has the path.

use super::server::{Call, ClientNumber, Refusal, Reply, Server, ServerNumber, Work};
use std::collections::BTreeMap;

/// Who makes stubs.
const OPERATOR: ClientNumber = ClientNumber(u32::MAX);

/// Prefixes of path names, and the servers that a stub named for them. The longest prefix counts.
#[derive(Debug, Default)]
pub(super) struct Prefixes(BTreeMap<String, ServerNumber>);

impl Prefixes {
    fn server(&self, path: &str) -> ServerNumber {
        let is_below = |prefix: &str| path == prefix || path.starts_with(&format!("{prefix}/"));
        let longest =
            self.0.iter().filter(|(prefix, _)| is_below(prefix)).max_by_key(|(prefix, _)| prefix.len());
        longest.map_or(ServerNumber(0), |(_, server)| *server)
    }
}

/// The servers; the first has the root.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) servers: Vec<Server>,
}

impl Cell {
    pub(super) fn of(servers: usize) -> Self {
        Self { servers: (0..servers).map(|_| Server::default()).collect() }
    }

    /// Gives what is below a name of the root to another server: a stub at the first, and the directory at the other.
    pub(super) fn place(&mut self, name: &str, at: ServerNumber) -> Result<(), Refusal> {
        let [first, ..] = self.servers.as_mut_slice() else { return Err(Refusal::Absent) };
        first.call(OPERATOR, name, Call::MakeStub(at))?;
        let other = self.servers.get_mut(at.0).ok_or(Refusal::Absent)?;
        other.call(OPERATOR, name, Call::MakeDir).map(|_| ())
    }

    /// What all servers did since this was asked last.
    pub(super) fn take_work(&mut self) -> Work {
        let mut all = Work::default();
        for server in &mut self.servers {
            all.add(&std::mem::take(&mut server.work));
        }
        all
    }

    /// Processes of all servers.
    pub(super) fn processes(&self) -> usize {
        self.servers.iter().map(Server::processes).sum()
    }

    /// A call to the server that a prefix hints at, and from there where stubs point; at most one step for each server.
    pub(super) fn call(
        &mut self,
        client: ClientNumber,
        prefixes: &mut Prefixes,
        path: &str,
        call: Call,
    ) -> Result<Reply, Refusal> {
        let mut at = prefixes.server(path);
        for _ in 0..=self.servers.len() {
            let server = self.servers.get_mut(at.0).ok_or(Refusal::Absent)?;
            match server.call(client, path, call) {
                Err(Refusal::Elsewhere { prefix_components, server }) => {
                    let prefix: Vec<&str> = path.split('/').take(prefix_components).collect();
                    prefixes.0.insert(prefix.join("/"), server);
                    at = server;
                }
                other => return other,
            }
        }
        Err(Refusal::Absent)
    }
}
