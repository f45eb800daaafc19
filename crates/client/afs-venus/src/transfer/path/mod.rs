//! Bytes of files over the data path, in front of another transfer that does whatever fails there.
//!
//! A fetch of a version that is held, and a store, go to the server's drive if they are large enough, a connection to it is open and
//! the file server gives a capability. Nothing is believed before it is proved: the drive by its key, which the file server told the
//! same user; the version and number of bytes by the drive; a store by Commit. Whatever goes wrong before a store is committed, the
//! other transfer begins anew, and the program that reads or closes does not notice.
//!
//! Before that, a fetch goes to the drives that a layout of the file names, and a store to the one for new data ([`drives`]).
//!
//! What this costs while a path does not work is bounded: no reader waits for a connection, no longer than [`grants::WAIT`] for a
//! capability, and no longer than ten seconds for the next bytes; then the path is left alone ([`failures`]).

mod capabilities;
mod connect;
mod doubts;
mod drives;
mod failures;
mod fallback;
mod fetch;
mod grants;
mod link;
mod offer;
mod opening;
mod renewing;
mod server;
mod steps;
mod store;
mod with_status;

use std::collections::BTreeMap;
use std::sync::Arc;

use afs_datapath::MINIMUM_SIZE;
use afs_rpc::{BoxFuture, EnvRef, Instant};
use afs_wire::fs::{CapabilityOutcome, StatusReply};
use afs_wire::ids::{DataVersion, Fid};
use bytes::Bytes;
use parking_lot::Mutex;

use self::drives::{AtServer, ServerDrives};
use self::fallback::Ended;
use self::server::{Common, Objects, ServerPath};
use crate::api::ExplainedDrive;
use crate::calls::Target;
use crate::config::DataPathConfig;
use crate::counters::{Counters, add};
use crate::identity::TokenId;
use crate::location::Server;
use crate::objects::ObjectReader;
use crate::transfer::{
    FETCH, Fetched, MemorySink, Sink, Source, StoreRequest, Transfer, TransferResult, Wanted,
};

/// In the place of a version: what is in the cache is of none.
const NO_VERSION: DataVersion = DataVersion(u64::MAX);

/// The data path in front of another transfer.
pub(crate) struct OverPath<T> {
    calls: T,
    common: Arc<Common>,
    /// By address in memory. Servers are never dropped, and each is kept with its path.
    servers: Mutex<BTreeMap<usize, Paths>>,
}

/// The drive of a server, and the drives that its layouts name.
#[derive(Clone)]
struct Paths {
    server: Arc<ServerPath>,
    drives: Arc<ServerDrives>,
}

impl Paths {
    fn new(server: &Arc<Server>, common: &Arc<Common>) -> Self {
        let drives = Arc::new(ServerDrives::new(server.clone(), common.clone()));
        Paths { server: Arc::new(ServerPath::new(server.clone(), common.clone())), drives }
    }
}

impl<T: Transfer> OverPath<T> {
    pub fn new(calls: T, env: EnvRef, config: DataPathConfig, counters: Arc<Counters>) -> Self {
        let common = Arc::new(Common { env, config, counters, objects: None });
        OverPath { calls, common, servers: Mutex::default() }
    }

    /// The same, which reads object stores where it can. To be called before anything is moved.
    pub fn reading(self, objects: Option<Arc<dyn ObjectReader>>) -> Self {
        let Common { env, config, counters, .. } = &*self.common;
        let (env, config, counters) = (env.clone(), config.clone(), counters.clone());
        let common = Arc::new(Common { env, config, counters, objects: objects.map(Objects::new) });
        OverPath { common, ..self }
    }

    /// The paths of a server, for so many bytes; `None` where calls are better.
    fn paths(&self, server: &Arc<Server>, bytes: u64) -> Option<Paths> {
        let config = &self.common.config;
        if !config.enabled || bytes == 0 || bytes < config.minimum_size.unwrap_or(MINIMUM_SIZE) {
            return None;
        }
        let mut servers = self.servers.lock();
        let make = || Paths::new(server, &self.common);
        Some(servers.entry(Arc::as_ptr(server) as usize).or_insert_with(make).clone())
    }

    /// The path of a server, if there is one already.
    fn known_path(&self, server: &Arc<Server>) -> Option<Arc<ServerPath>> {
        self.known_paths(server).map(|paths| paths.server)
    }

    fn known_paths(&self, server: &Arc<Server>) -> Option<Paths> {
        self.servers.lock().get(&(Arc::as_ptr(server) as usize)).cloned()
    }

    async fn fetch_by_path(
        &self,
        target: &Target,
        wanted: &Wanted,
        sink: &mut dyn Sink,
    ) -> Option<TransferResult<Fetched>> {
        let version = wanted.held.filter(|version| *version != NO_VERSION)?;
        let bytes = wanted.range.end - wanted.range.start;
        let paths = self.paths(&target.server, bytes)?;
        let fetched = match self.fetch_at_drives(&paths, target, (wanted, version), sink).await {
            Some(fetched) => fetched,
            None => self.fetch_at_server(&paths, target, (wanted, version), sink).await?,
        };
        if fetched.is_ok() {
            self.common.counters.not_made(FETCH);
            target.evidence.without_call();
        }
        Some(fetched.map(|()| Fetched::OfVersion(version)))
    }

    /// At the drives themselves; `None` if it is to be made at the file server.
    async fn fetch_at_drives(
        &self,
        paths: &Paths,
        target: &Target,
        what: (&Wanted, DataVersion),
        sink: &mut dyn Sink,
    ) -> Option<TransferResult<()>> {
        if !self.common.config.drives {
            return None;
        }
        match paths.drives.fetch(target, what, sink, self).await {
            Ok(bytes) => {
                add(&self.common.counters.drive_bytes_fetched, bytes);
                Some(Ok(()))
            }
            Err(Ended::Failed(error)) => Some(Err(error)),
            Err(Ended::NoPath | Ended::Fallback(_)) => None,
        }
    }

    /// At the drive of the file server; `None` if it is to be made by calls.
    async fn fetch_at_server(
        &self,
        paths: &Paths,
        target: &Target,
        (wanted, version): (&Wanted, DataVersion),
        sink: &mut dyn Sink,
    ) -> Option<TransferResult<()>> {
        let fetched = self.noted(paths.server.fetch(target, wanted, version, sink).await)?;
        if fetched.is_ok() {
            add(&self.common.counters.path_bytes_fetched, wanted.range.end - wanted.range.start);
        }
        Some(fetched)
    }

    async fn store_by_path(
        &self,
        target: &Target,
        change: &StoreRequest<'_>,
        source: &mut dyn Source,
    ) -> Option<TransferResult<StatusReply>> {
        let bytes = change.pieces.iter().map(|piece| piece.range.end - piece.range.start).sum();
        let paths = self.paths(&target.server, bytes)?;
        let (stored, counter) = match self.store_at_drives(&paths, target, change, source).await {
            Some(stored) => (stored, &self.common.counters.drive_bytes_stored),
            None => {
                let stored = paths.server.store(target, change, bytes, source).await;
                (self.noted(stored)?, &self.common.counters.path_bytes_stored)
            }
        };
        if stored.is_ok() {
            add(counter, bytes);
            self.common.counters.not_made(change.operation());
        }
        Some(stored)
    }

    /// At a drive itself; `None` if it is to be made at the file server.
    async fn store_at_drives(
        &self,
        paths: &Paths,
        target: &Target,
        change: &StoreRequest<'_>,
        source: &mut dyn Source,
    ) -> Option<TransferResult<StatusReply>> {
        if !self.common.config.drives {
            return None;
        }
        match paths.drives.store(target, change, source).await {
            Ok(reply) => Some(Ok(reply)),
            Err(Ended::Failed(error)) => Some(Err(error)),
            Err(Ended::NoPath | Ended::Fallback(_)) => None,
        }
    }

    /// What a transfer has come to; `None` if it is to be made by calls.
    fn noted<V>(&self, done: Result<V, Ended>) -> Option<TransferResult<V>> {
        match done {
            Ok(value) => Some(Ok(value)),
            Err(Ended::Failed(error)) => Some(Err(error)),
            Err(Ended::NoPath) => None,
            Err(Ended::Fallback(why)) => {
                tracing::debug!(reason = why.name(), "moved by calls, not by the data path");
                self.common.counters.path_fallback(why.name());
                None
            }
        }
    }
}

impl<T: Transfer> AtServer for OverPath<T> {
    fn bytes<'a>(&'a self, target: &'a Target, wanted: Wanted) -> BoxFuture<'a, Option<Bytes>> {
        Box::pin(async move {
            let (version, length) = (wanted.held?, wanted.range.end - wanted.range.start);
            let mut sink = MemorySink::new(length);
            let by_path = match self.paths(&target.server, length) {
                Some(paths) => self.fetch_at_server(&paths, target, (&wanted, version), &mut sink).await,
                None => None,
            };
            let of = match by_path {
                Some(fetched) => fetched.map(|()| version),
                None => {
                    self.common.counters.call(FETCH);
                    self.calls.fetch(target, &wanted, &mut sink).await.map(|fetched| fetched.version())
                }
            };
            let bytes = Bytes::from(sink.into_bytes());
            (of.ok()? == version && bytes.len() as u64 == length).then_some(bytes)
        })
    }
}

impl<T: Transfer> Transfer for OverPath<T> {
    fn fetch<'a>(
        &'a self,
        target: &'a Target,
        wanted: &'a Wanted,
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, TransferResult<Fetched>> {
        Box::pin(async move {
            match self.fetch_by_path(target, wanted, sink).await {
                Some(done) => done,
                None => self.calls.fetch(target, wanted, sink).await,
            }
        })
    }

    fn store<'a>(
        &'a self,
        target: &'a Target,
        change: &'a StoreRequest<'a>,
        source: &'a mut dyn Source,
    ) -> BoxFuture<'a, TransferResult<StatusReply>> {
        Box::pin(async move {
            match self.store_by_path(target, change, source).await {
                Some(done) => done,
                None => self.calls.store(target, change, source).await,
            }
        })
    }

    fn takes_several_pieces(&self, server: &Server) -> bool {
        self.calls.takes_several_pieces(server)
    }

    fn fetches_by_call(&self, server: &Arc<Server>, bytes: u64) -> bool {
        let is_open = |paths: Paths| paths.server.state().0 == server::IN_USE || paths.drives.is_in_use();
        !self.paths(server, bytes).is_some_and(is_open)
    }

    fn lacks_capability(&self, server: &Arc<Server>, token: TokenId, directory: Fid) -> bool {
        self.known_path(server).is_some_and(|path| path.lacks_capability(token, directory))
    }

    fn capability_came(
        &self,
        server: &Arc<Server>,
        (token, directory): (TokenId, Fid),
        outcome: CapabilityOutcome,
        asked: Instant,
    ) {
        if let Some(path) = self.known_path(server) {
            path.capability_came(token, directory, outcome, asked);
        }
    }

    fn statuses_came(
        &self,
        server: &Arc<Server>,
        directory: (TokenId, Fid),
        files: &[(Fid, DataVersion, u64)],
    ) {
        if let Some(paths) = self.known_paths(server) {
            paths.drives.statuses_came(directory, files.iter().copied());
        }
    }

    fn path_state(&self, server: &Arc<Server>) -> String {
        if !self.common.config.enabled {
            return "off".into();
        }
        match self.known_path(server).map(|path| path.state()) {
            None => "not asked for".into(),
            Some((word, None)) => word.into(),
            Some((word, Some(why))) => format!("{word}: {}", why.name()),
        }
    }

    fn drives(&self, server: &Arc<Server>) -> Vec<ExplainedDrive> {
        self.known_paths(server).map(|paths| paths.drives.explained()).unwrap_or_default()
    }
}
