//! A cell: its location servers, and queries to them.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use afs_rpc::{CallError, CallOptions, Connection, EnvExt, EnvRef, Instant, Rx, Security};
use afs_wire::error::AbortCode;
use afs_wire::ids::{CellName, Uuid, VolumeId};
use afs_wire::rpc::{Request, ServiceId};
use afs_wire::vl::{self, AddressQuery, NameText, ServerKey};
use afs_wire::xdr::DecodeError;
use parking_lot::Mutex;

use crate::config::CellConfig;
use crate::counters::Counters;
use crate::error::{ErrorKind, Result, VenusError};
use crate::location::{Absence, Group};

/// Dead time of probes, shorter than that of calls.
const PROBE_DEAD: Duration = Duration::from_secs(6);

/// Addresses of another server than was asked for.
const OF_ANOTHER_SERVER: DecodeError = DecodeError::BadValue { what: "server", value: 0 };

/// One cell.
pub(crate) struct Cell {
    pub name: CellName,
    rx: Rx,
    options: CallOptions,
    file_port: AtomicU16,
    servers: Mutex<Arc<[Arc<LocationServer>]>>,
    /// Index of the server to try first: random at first, then the last one that replied.
    first: AtomicUsize,
    /// True if the directory of all cells lists it.
    listed: AtomicBool,
    /// Until when the addresses found by a look-up are valid, in nanoseconds; 0 if they were configured.
    found_until: AtomicU64,
    /// True if a location server was queried since the addresses were found.
    queried: AtomicBool,
}

/// Environment of a query.
pub(crate) struct QueryEnv<'a> {
    pub env: &'a EnvRef,
    pub counters: &'a Counters,
    /// Time limit of one server if there are others to query after it.
    pub hedge_timeout: Duration,
    /// Whether the last one has this limit, too: there is another answer.
    pub is_hasty: bool,
}

/// One location server of a cell.
pub(crate) struct LocationServer {
    pub peer: SocketAddr,
    /// Whether it replies.
    pub absence: Absence,
    connection: Connection,
    /// Connection for probes.
    probing: Connection,
    /// True if it does not know the calls with UUIDs.
    old: AtomicBool,
}

impl Cell {
    pub fn new(config: &CellConfig, env: &EnvRef, rx: &Rx, dead: Duration) -> Self {
        let cell = Cell {
            name: config.name.clone(),
            rx: rx.clone(),
            options: CallOptions { dead: Some(dead), hard: Some(dead * 3) },
            file_port: AtomicU16::new(config.file_port),
            servers: Mutex::new(Arc::new([])),
            first: AtomicUsize::new(env.random_u64() as usize % config.location_servers.len().max(1)),
            listed: AtomicBool::new(config.is_listed),
            found_until: AtomicU64::new(0),
            queried: AtomicBool::new(false),
        };
        cell.set_servers(&config.location_servers);
        cell
    }

    /// Port of its file servers.
    pub fn file_port(&self) -> u16 {
        self.file_port.load(Ordering::Relaxed)
    }

    /// Addresses of its location servers.
    pub fn peers(&self) -> Vec<SocketAddr> {
        self.servers().iter().map(|server| server.peer).collect()
    }

    /// Sets location servers and port as configured, in place of those before.
    pub fn configure(&self, config: &CellConfig) {
        self.file_port.store(config.file_port, Ordering::Relaxed);
        self.found_until.store(0, Ordering::Relaxed);
        self.set_servers(&config.location_servers);
        self.listed.fetch_or(config.is_listed, Ordering::Relaxed);
    }

    /// Sets location servers that a look-up found, valid until then.
    pub fn found(&self, peers: &[SocketAddr], until: Instant) {
        self.queried.store(false, Ordering::Relaxed);
        self.valid_until(until);
        self.set_servers(peers);
    }

    /// The location servers stay until then as they are.
    pub fn valid_until(&self, until: Instant) {
        self.found_until.store(until.as_nanos().max(1), Ordering::Relaxed);
    }

    /// True if its location servers come from a look-up, and not from the configuration.
    pub fn is_found(&self) -> bool {
        self.found_until.load(Ordering::Relaxed) != 0
    }

    /// True if its location servers come from a look-up that is not valid any more, and have been queried since.
    pub fn is_outdated(&self, now: Instant) -> bool {
        self.is_found()
            && Instant::from_nanos(self.found_until.load(Ordering::Relaxed)) <= now
            && self.queried.load(Ordering::Relaxed)
    }

    /// True if the directory of all cells lists it: the home cell, cells that the configuration says so of, and cells that were entered.
    pub fn is_listed(&self) -> bool {
        self.listed.load(Ordering::Relaxed)
    }

    /// Lists it from now on.
    pub fn list(&self) {
        self.listed.store(true, Ordering::Relaxed);
    }

    fn servers(&self) -> Arc<[Arc<LocationServer>]> {
        self.servers.lock().clone()
    }

    /// Servers that stay keep their state.
    fn set_servers(&self, peers: &[SocketAddr]) {
        let mut servers = self.servers.lock();
        let server = |&peer: &SocketAddr| {
            let kept = servers.iter().find(|server| server.peer == peer).cloned();
            kept.unwrap_or_else(|| Arc::new(LocationServer::new(peer, &self.rx, self.options)))
        };
        *servers = peers.iter().map(server).collect();
    }

    /// The group of a volume, by name or decimal number. `Ok(None)` if the service knows none.
    pub async fn group(&self, query_env: &QueryEnv<'_>, name: &str) -> Result<Option<Group>> {
        let Ok(text) = NameText::new(name) else { return Ok(None) };
        let answer = self
            .query(query_env, "GetEntryByNameU", |server| {
                let text = text.clone();
                async move {
                    if !server.old.load(Ordering::Relaxed) {
                        match server.connection.call(&vl::GetEntryByNameU { name: text.clone() }).await {
                            Err(CallError::Abort(AbortCode::RXGEN_OPCODE)) => {
                                server.old.store(true, Ordering::Relaxed)
                            }
                            other => return other.map(|reply| Group::from(reply.entry)),
                        }
                    }
                    let reply = server.connection.call(&vl::GetEntryByNameN { name: text }).await?;
                    Ok(Group::from(reply.entry))
                }
            })
            .await;
        match answer {
            Ok(group) => Ok(Some(group)),
            Err(error) if error.code.is_some_and(says_no_such_volume) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A server's addresses, and the version of the list.
    pub async fn addresses(&self, query_env: &QueryEnv<'_>, uuid: Uuid) -> Result<(Vec<Ipv4Addr>, u32)> {
        let query = AddressQuery::from(ServerKey::Uuid(uuid));
        let reply = self
            .query(query_env, vl::GetAddrsU::NAME, |server| async move {
                let reply = server.connection.call(&vl::GetAddrsU { query }).await?;
                // What is said of another server would be taken for this one until the version of its list changes.
                let is_of_server = reply.uuid == uuid;
                is_of_server.then_some(reply).ok_or(CallError::Decode(OF_ANOTHER_SERVER))
            })
            .await?;
        Ok((reply.addresses.into_vec(), reply.unique))
    }

    /// Queries one location server after the other until one gives a valid reply, except those that are known to be
    /// unreachable; if all are, it fails at once. Each but the last has a short time limit.
    async fn query<T, F, Fut>(&self, query_env: &QueryEnv<'_>, name: &'static str, attempt: F) -> Result<T>
    where
        F: Fn(Arc<LocationServer>) -> Fut,
        Fut: Future<Output = std::result::Result<T, CallError>> + Send,
        T: Send,
    {
        let mut failure = VenusError::new(ErrorKind::NoVolume, name);
        let servers = self.servers();
        self.queried.store(true, Ordering::Relaxed);
        let mut left: Vec<usize> = self.query_order(servers.len());
        left.retain(|index| {
            let server = servers.get(*index).filter(|server| server.absence.is_unreachable());
            if let Some(away) = server {
                failure = VenusError::new(ErrorKind::ServerUnreachable, name).at(away.peer);
            }
            server.is_none()
        });
        for (n, index) in left.iter().enumerate() {
            let Some(server) = servers.get(*index) else { continue };
            query_env.counters.call(name);
            let begun = query_env.env.now();
            let silence = CallError::Unreachable { peer: server.peer };
            let answer = match query_env.is_hasty || n + 1 < left.len() {
                true => query_env
                    .env
                    .timeout(query_env.hedge_timeout, attempt(server.clone()))
                    .await
                    .unwrap_or(Err(silence)),
                false => attempt(server.clone()).await,
            };
            match self.classify(*index, server, name, answer, (begun, query_env.env.now())) {
                Ok(answer) => return answer,
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Separates replies of the service from errors after which another server must be tried.
    fn classify<T>(
        &self,
        index: usize,
        server: &LocationServer,
        name: &'static str,
        answer: std::result::Result<T, CallError>,
        (begun, now): (Instant, Instant),
    ) -> std::result::Result<Result<T>, VenusError> {
        match answer {
            Ok(value) => {
                self.answered(index, server, now);
                Ok(Ok(value))
            }
            Err(CallError::Abort(code)) if !is_server_failure(code) => {
                self.answered(index, server, now);
                let kind =
                    if says_no_such_volume(code) { ErrorKind::NoVolume } else { ErrorKind::of_abort(code) };
                Ok(Err(VenusError { code: Some(code), ..VenusError::new(kind, name).at(server.peer) }))
            }
            Err(CallError::Closed) => Ok(Err(VenusError::new(ErrorKind::ShutDown, name))),
            Err(error) => {
                tracing::debug!(server = %server.peer, %error, "a location server gives no answer");
                let code = error.abort_code();
                let is_lost = error.is_silence() && !server.absence.heard_since(begun);
                if is_lost && server.absence.began(begun, now) {
                    tracing::warn!(server = %server.peer, "lost contact with location server");
                }
                Err(VenusError {
                    code,
                    ..VenusError::new(ErrorKind::ServerUnreachable, name).at(server.peer)
                })
            }
        }
    }

    /// Order of the queries: from the server that replied last.
    fn query_order(&self, count: usize) -> Vec<usize> {
        let first = self.first.load(Ordering::Relaxed);
        (0..count).map(|n| (first + n) % count).collect()
    }

    /// Its location servers that do not reply.
    pub fn unreachable(&self) -> Vec<Arc<LocationServer>> {
        self.servers().iter().filter(|server| server.absence.is_unreachable()).cloned().collect()
    }

    /// True if this is one of its location servers.
    pub fn has(&self, server: &Arc<LocationServer>) -> bool {
        self.servers().iter().any(|known| Arc::ptr_eq(known, server))
    }

    /// Remaining time for which waiting is worthwhile; see [`Absence::remaining_wait`].
    pub fn remaining_wait(&self, now: Instant, most: Duration) -> Duration {
        let servers = self.servers();
        servers.iter().map(|server| server.absence.remaining_wait(now, most)).max().unwrap_or_default()
    }

    fn answered(&self, index: usize, server: &LocationServer, now: Instant) {
        self.first.store(index, Ordering::Relaxed);
        server.absence.answered(now);
    }
}

impl LocationServer {
    fn new(peer: SocketAddr, rx: &Rx, options: CallOptions) -> Self {
        let connection = rx.connection(peer, ServiceId::LOCATION, Security::null());
        let probing = CallOptions { dead: options.dead.map(|dead| dead.min(PROBE_DEAD)), hard: options.hard };
        LocationServer {
            peer,
            absence: Absence::default(),
            probing: connection.clone().with_options(probing),
            connection: connection.with_options(options),
            old: AtomicBool::new(false),
        }
    }

    /// Probes it. Any reply counts, also an abort that does not come from the network.
    pub async fn probe(&self) -> std::result::Result<(), CallError> {
        match self.probing.call(&vl::ProbeServer {}).await {
            Err(CallError::Abort(code)) if code.0 >= 0 || code == AbortCode::RXGEN_OPCODE => Ok(()),
            other => other.map(drop),
        }
    }
}

/// Text by which the location service finds a volume number (docs/protocol/vldb.md "4. Semantics").
pub(crate) fn volume_query(id: VolumeId) -> String {
    id.0.to_string()
}

fn says_no_such_volume(code: AbortCode) -> bool {
    [AbortCode::VL_NOENT, AbortCode::VL_EMPTY, AbortCode::VL_ENTDELETED, AbortCode::VL_BADNAME]
        .contains(&code)
}

/// True if another location server may reply: network codes, and those of a database without a quorum.
fn is_server_failure(code: AbortCode) -> bool {
    (code.0 < 0 && code != AbortCode::RXGEN_OPCODE)
        || (5376..5400).contains(&code.0)
        || code == AbortCode::VL_IO
}
