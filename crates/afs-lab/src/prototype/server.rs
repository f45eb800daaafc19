//! Server of the prototype: a tree of files with their status beside it, named by path names.

use std::collections::{BTreeMap, BTreeSet};

/// Number of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ServerNumber(pub(super) usize);

/// Number of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClientNumber(pub(super) u32);

/// Version of a file: grows with every change at its server. The prototype's were times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp(pub(super) u64);

/// A call. Paths have no leading slash.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    TestAuth(Stamp),
    GetFileStat,
    Fetch,
    Store,
    SetFileStat,
    ListDir,
    MakeDir,
    /// A stub directory for what another server has; made by an operator.
    MakeStub(ServerNumber),
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// Whether a copy is valid.
    Valid(bool),
    /// Version of what was named.
    Status(Stamp),
    /// Names in a directory.
    Names(Vec<String>),
}

/// Why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No such name.
    Absent,
    /// The path goes through something that is no directory, or names one where a file is needed, or the reverse.
    Kind,
    /// The search ended in a stub: this many components lie at another server.
    Elsewhere { prefix_components: usize, server: ServerNumber },
}

#[derive(Debug)]
enum Node {
    Directory(Directory),
    File,
    Stub(ServerNumber),
}

#[derive(Debug, Default)]
struct Directory {
    entries: BTreeMap<String, Node>,
    /// Status files of the entries, in the shadow directory.
    admin: BTreeMap<String, Stamp>,
}

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

/// A server.
#[derive(Debug, Default)]
pub(super) struct Server {
    root: Directory,
    clock: u64,
    processes: BTreeSet<ClientNumber>,
    pub(super) work: Work,
}

impl Server {
    /// Processes: one for each client that ever made a call.
    pub(super) fn processes(&self) -> usize {
        self.processes.len()
    }

    pub(super) fn call(&mut self, client: ClientNumber, path: &str, call: Call) -> Result<Reply, Refusal> {
        self.processes.insert(client);
        *self.work.calls.entry(call.name()).or_default() += 1;
        self.clock += 1;
        let stamp = Stamp(self.clock);
        let components: Vec<&str> = path.split('/').filter(|component| !component.is_empty()).collect();
        self.work.components += components.len() as u64;
        let Some((name, parents)) = components.split_last() else {
            return self.root.names(call);
        };
        let directory = self.root.walk(parents)?;
        if let Some(Node::Stub(server)) = directory.entries.get(*name) {
            return Err(Refusal::Elsewhere { prefix_components: components.len(), server: *server });
        }
        let reads_status = matches!(call, Call::TestAuth(_) | Call::GetFileStat | Call::Fetch);
        self.work.admin_reads += u64::from(reads_status);
        directory.serve(name, call, stamp)
    }
}

impl Call {
    /// Its column in Table II; what has none is `others`.
    fn name(self) -> &'static str {
        match self {
            Self::TestAuth(_) => "TestAuth",
            Self::GetFileStat => "GetFileStat",
            Self::Fetch => "Fetch",
            Self::Store => "Store",
            Self::SetFileStat => "SetFileStat",
            Self::ListDir => "ListDir",
            Self::MakeDir | Self::MakeStub(_) => "others",
        }
    }
}

impl Directory {
    /// The directory of some components below this one.
    fn walk(&mut self, components: &[&str]) -> Result<&mut Self, Refusal> {
        let mut directory = self;
        for (at, component) in components.iter().enumerate() {
            directory = match directory.entries.get_mut(*component) {
                Some(Node::Directory(below)) => below,
                Some(Node::Stub(server)) => {
                    return Err(Refusal::Elsewhere { prefix_components: at + 1, server: *server });
                }
                Some(Node::File) => return Err(Refusal::Kind),
                None => return Err(Refusal::Absent),
            };
        }
        Ok(directory)
    }

    /// A call on an entry of this directory.
    fn serve(&mut self, name: &str, call: Call, now: Stamp) -> Result<Reply, Refusal> {
        match (call, self.entries.get(name)) {
            (Call::Store, None | Some(Node::File)) => Ok(self.change(name, Some(Node::File), now)),
            (Call::MakeDir, None) => Ok(self.change(name, Some(Node::Directory(Self::default())), now)),
            (Call::MakeStub(server), None) => Ok(self.change(name, Some(Node::Stub(server)), now)),
            (_, None) => Err(Refusal::Absent),
            (Call::TestAuth(stamp), Some(_)) => Ok(Reply::Valid(self.stamp(name) == stamp)),
            (Call::GetFileStat, Some(_)) | (Call::Fetch, Some(Node::File)) => {
                Ok(Reply::Status(self.stamp(name)))
            }
            (Call::SetFileStat, Some(_)) => Ok(self.change(name, None, now)),
            (Call::ListDir, Some(Node::Directory(below))) => below.names(call),
            _ => Err(Refusal::Kind),
        }
    }

    fn change(&mut self, name: &str, node: Option<Node>, now: Stamp) -> Reply {
        if let Some(node) = node {
            self.entries.insert(name.to_owned(), node);
        }
        self.admin.insert(name.to_owned(), now);
        Reply::Status(now)
    }

    fn stamp(&self, name: &str) -> Stamp {
        self.admin.get(name).copied().unwrap_or_default()
    }

    /// A call on this directory itself.
    fn names(&self, call: Call) -> Result<Reply, Refusal> {
        match call {
            Call::ListDir => Ok(Reply::Names(self.entries.keys().cloned().collect())),
            _ => Err(Refusal::Kind),
        }
    }
}
