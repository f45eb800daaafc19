//! A client machine, with shorthands for operations of its users.

use std::sync::Arc;

use afs_rpc::EnvRef;
use afs_sim::World;
use afs_testkit::ClientMachine;
use afs_venus::{Entry, HandleId, NodeId, OpenFlags, Result, Venus};
use bytes::Bytes;

use super::{LIMIT, RecordingSink};

#[derive(Clone)]
pub struct Client {
    pub venus: Arc<Venus>,
    pub node: afs_sim::NodeId,
    pub env: EnvRef,
    pub invalidated: RecordingSink,
    pub world: World,
}

impl Client {
    /// Starts the cache manager of a machine, with a sink that records invalidations.
    pub fn start(mut machine: ClientMachine, world: World) -> Result<Client> {
        let (node, env, invalidated) = (machine.node, machine.env.clone(), RecordingSink::default());
        machine.config.sink = Arc::new(invalidated.clone());
        let venus = machine.start(LIMIT).unwrap()?;
        Ok(Client { venus, node, env, invalidated, world })
    }

    /// The same machine for one of its users.
    pub fn user(&self, uid: u32) -> Client {
        use std::task::{Context, Poll, Waker};
        let client = std::pin::pin!(self.process(uid, 0));
        match client.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(client) => client,
            Poll::Pending => panic!("the user has a session"),
        }
    }

    /// The same machine for a process of one of its users.
    pub async fn process(&self, uid: u32, pid: u32) -> Client {
        let venus = Arc::new(self.venus.on_behalf_of(afs_venus::Requester { uid, pid }).await);
        Client { venus, ..self.clone() }
    }

    /// Sets the token of a user of this machine to one of a user of the cell.
    pub async fn log_in(&self, uid: u32, name: &str) {
        self.log_in_as(afs_venus::TokenOwner::Uid(uid), name, None).await;
    }

    pub async fn log_in_as(
        &self,
        owner: afs_venus::TokenOwner,
        name: &str,
        expires: Option<afs_rpc::UnixTime>,
    ) {
        let cell = afs_wire::ids::CellName::new("test.cell").unwrap();
        let (security, label) = (super::trusted_name(name), name.into());
        let token = afs_venus::Token { cell, security, expires, label, is_narrowed: false };
        self.venus.set_token(owner, token).await.unwrap();
    }

    /// Sets the token of an owner to one of a user of the cell without groups.
    pub async fn log_in_without(&self, owner: afs_venus::TokenOwner, name: &str, groups: &[i32]) {
        let cell = afs_wire::ids::CellName::new("test.cell").unwrap();
        let security = super::trusted_name_without(name, groups);
        let label = format!("{name} without {groups:?}");
        let token = afs_venus::Token { cell, security, expires: None, label, is_narrowed: true };
        self.venus.set_token(owner, token).await.unwrap();
    }

    /// Sets the token of an owner to one of a generation.
    pub async fn log_in_of(&self, owner: afs_venus::TokenOwner, name: &str, generation: u64) {
        let cell = afs_wire::ids::CellName::new("test.cell").unwrap();
        let (security, label) = (super::trusted_name_of(name, generation), name.into());
        let token = afs_venus::Token { cell, security, expires: None, label, is_narrowed: false };
        self.venus.set_token(owner, token).await.unwrap();
    }

    /// Sets the access list of a directory: names and rights.
    pub async fn set_acl(&self, path: &str, entries: &[(&str, &str)]) -> Result<()> {
        let rights = |text: &str| text.parse::<afs_wire::ids::Rights>().unwrap().0;
        let lines: String =
            entries.iter().map(|(name, text)| format!("{name}\t{}\n", rights(text))).collect();
        let text = format!("{}\n0\n{lines}", entries.len());
        let node = self.venus.walk(path.as_bytes(), true).await?.node;
        self.venus.set_property(node, b"afs.acl", text.as_bytes()).await
    }

    /// Splits a path into the node of its directory and its last name.
    pub async fn split<'a>(&self, path: &'a str) -> Result<(NodeId, &'a [u8])> {
        match path.rsplit_once('/') {
            Some((dir, name)) => Ok((self.venus.walk(dir.as_bytes(), true).await?.node, name.as_bytes())),
            None => Ok((NodeId::ROOT, path.as_bytes())),
        }
    }

    pub async fn find(&self, path: &str) -> Result<Entry> {
        let (dir, name) = self.split(path).await?;
        self.venus.lookup(dir, name).await
    }

    /// Creates or truncates a file, writes and closes it.
    pub async fn put(&self, path: &str, data: &[u8]) -> Result<()> {
        let handle = self.open_new(path).await?;
        let written = self.write_all(handle, data).await;
        let closed = self.venus.flush(handle, 0).await;
        self.venus.release(handle).await.ok();
        written.and(closed)
    }

    pub async fn write_all(&self, handle: HandleId, data: &[u8]) -> Result<()> {
        for (n, piece) in data.chunks(128 << 10).enumerate() {
            self.venus.write(handle, (n * (128 << 10)) as u64, Bytes::copy_from_slice(piece)).await?;
        }
        Ok(())
    }

    pub async fn open_new(&self, path: &str) -> Result<HandleId> {
        let (dir, name) = self.split(path).await?;
        let flags = OpenFlags { truncate: true, ..OpenFlags::READ_WRITE };
        match self.venus.lookup(dir, name).await {
            Ok(entry) => Ok(self.venus.open(entry.node, flags).await?.handle),
            Err(_) => Ok(self.venus.create(dir, name, 0o644, flags).await?.1.handle),
        }
    }

    pub async fn open(&self, path: &str, flags: OpenFlags) -> Result<HandleId> {
        let entry = self.find(path).await?;
        Ok(self.venus.open(entry.node, flags).await?.handle)
    }

    /// Opens, reads and closes a file.
    pub async fn get(&self, path: &str) -> Result<Vec<u8>> {
        let handle = self.open(path, OpenFlags::READ).await?;
        let data = self.read_all(handle).await;
        self.venus.flush(handle, 0).await?;
        self.venus.release(handle).await?;
        data
    }

    pub async fn read_all(&self, handle: HandleId) -> Result<Vec<u8>> {
        let mut data = Vec::new();
        loop {
            let piece = self.venus.read(handle, data.len() as u64, 128 << 10).await?;
            if piece.is_empty() {
                return Ok(data);
            }
            data.extend_from_slice(&piece);
        }
    }

    pub async fn names(&self, path: &str) -> Result<Vec<String>> {
        let dir = self.venus.walk(path.as_bytes(), true).await?.node;
        let listed = self.venus.readdir(dir, 0, usize::MAX).await?;
        Ok(listed.into_iter().map(|entry| String::from_utf8_lossy(&entry.name).into_owned()).collect())
    }

    pub async fn mkdir(&self, path: &str) -> Result<()> {
        let (dir, name) = self.split(path).await?;
        self.venus.mkdir(dir, name, 0o755).await.map(drop)
    }

    pub async fn mount(&self, path: &str, text: &str) -> Result<Entry> {
        let (dir, name) = self.split(path).await?;
        self.venus.symlink(dir, name, text.as_bytes()).await
    }

    /// Number of calls of that name so far.
    pub fn calls(&self, name: &str) -> u64 {
        self.venus.counters().calls.get(name).copied().unwrap_or(0)
    }

    /// Stores of data that it has made so far, each way: the calls that end them.
    pub fn stores(&self) -> u64 {
        let ends = ["StoreData64", "StoreRanges", "Commit"];
        ends.iter().map(|name| self.calls(name)).sum()
    }

    /// Calls made since an earlier count, as `NAME n`.
    pub fn calls_since(&self, before: &afs_venus::CounterValues) -> Vec<String> {
        let now = self.venus.counters().calls;
        let new = now.iter().map(|(name, n)| (name, n - before.calls.get(name).unwrap_or(&0)));
        new.filter(|(_, n)| *n > 0).map(|(name, n)| format!("{name} {n}")).collect()
    }
}

/// Pseudorandom bytes.
pub fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as u8
    };
    (0..len).map(|_| next()).collect()
}
