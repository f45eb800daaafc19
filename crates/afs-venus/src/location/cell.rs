//! A cell: its location servers, and what they answer.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use afs_rpc::{CallError, CallOptions, Connection, EnvExt, EnvRef, Instant, Rx, Security};
use afs_wire::error::AbortCode;
use afs_wire::ids::{CellName, Uuid, VolumeId};
use afs_wire::rpc::{Request, ServiceId};
use afs_wire::vl::{self, AddressQuery, NameText, ServerKey};

use crate::config::CellConfig;
use crate::counters::Counters;
use crate::error::{ErrorKind, Result, VenusError};
use crate::location::Group;

/// A location server that was silent is passed by for this long, while there are others.
const SILENT_FOR: Duration = Duration::from_secs(30);

/// One cell.
pub(crate) struct Cell {
    pub name: CellName,
    pub file_port: u16,
    servers: Vec<LocationServer>,
    /// Where the turn begins: chosen at random, then the last one that answered.
    first: AtomicUsize,
}

struct LocationServer {
    peer: SocketAddr,
    connection: Connection,
    silent_at: AtomicU64,
    /// It does not know the calls with UUIDs.
    old: AtomicBool,
}

impl Cell {
    pub fn new(config: &CellConfig, env: &EnvRef, rx: &Rx, dead: Duration) -> Self {
        let options = CallOptions { dead: Some(dead), hard: Some(dead * 3) };
        let server = |&peer: &SocketAddr| LocationServer {
            peer,
            connection: rx.connection(peer, ServiceId::LOCATION, Security::null()).with_options(options),
            silent_at: AtomicU64::new(0),
            old: AtomicBool::new(false),
        };
        Cell {
            name: config.name.clone(),
            file_port: config.file_port,
            servers: config.location_servers.iter().map(server).collect(),
            first: AtomicUsize::new(env.random_u64() as usize % config.location_servers.len().max(1)),
        }
    }

    /// The group of a volume, by name or decimal number. `Ok(None)` if the service knows none.
    pub async fn group(&self, env: &EnvRef, counters: &Counters, name: &str) -> Result<Option<Group>> {
        let Ok(text) = NameText::new(name) else { return Ok(None) };
        let answer = self
            .ask(env, counters, "GetEntryByNameU", |server| {
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

    /// A server's addresses and the version of the list.
    pub async fn addresses(
        &self,
        env: &EnvRef,
        counters: &Counters,
        uuid: Uuid,
    ) -> Result<(Vec<Ipv4Addr>, u32)> {
        let query = AddressQuery::from(ServerKey::Uuid(uuid));
        let reply = self
            .ask(env, counters, vl::GetAddrsU::NAME, |server| async move {
                server.connection.call(&vl::GetAddrsU { query }).await
            })
            .await?;
        Ok((reply.addresses.into_vec(), reply.unique))
    }

    /// Asks one location server after the other until one gives an answer of its own.
    async fn ask<'a, T, F, Fut>(
        &'a self,
        env: &EnvRef,
        counters: &Counters,
        name: &'static str,
        attempt: F,
    ) -> Result<T>
    where
        F: Fn(&'a LocationServer) -> Fut,
        Fut: Future<Output = std::result::Result<T, CallError>>,
    {
        let mut failure = VenusError::new(ErrorKind::NoVolume, name);
        for index in self.turn(env.now()) {
            let Some(server) = self.servers.get(index) else { continue };
            counters.call(name);
            match attempt(server).await {
                Ok(value) => {
                    self.answered(index, server);
                    return Ok(value);
                }
                Err(CallError::Abort(code)) if !is_servers_own_trouble(code) => {
                    self.answered(index, server);
                    let kind = if says_no_such_volume(code) {
                        ErrorKind::NoVolume
                    } else {
                        ErrorKind::of_abort(code)
                    };
                    return Err(VenusError {
                        kind,
                        code: Some(code),
                        ..VenusError::new(kind, name).at(server.peer)
                    });
                }
                Err(CallError::Closed) => return Err(VenusError::new(ErrorKind::ShutDown, name)),
                Err(error) => {
                    tracing::debug!(server = %server.peer, %error, "a location server gives no answer");
                    server.silent_at.store(env.now().as_nanos().max(1), Ordering::Relaxed);
                    failure = VenusError::new(ErrorKind::ServerAway, name).at(server.peer);
                    failure.code = error.abort_code();
                }
            }
        }
        Err(failure)
    }

    /// The order in which to ask: from the one that last answered, those silent of late at the end.
    fn turn(&self, now: Instant) -> Vec<usize> {
        let count = self.servers.len();
        let first = self.first.load(Ordering::Relaxed);
        let mut turn: Vec<usize> = (0..count).map(|n| (first + n) % count).collect();
        turn.sort_by_key(|&index| self.servers.get(index).is_some_and(|server| server.is_silent(now)));
        turn
    }

    fn answered(&self, index: usize, server: &LocationServer) {
        self.first.store(index, Ordering::Relaxed);
        server.silent_at.store(0, Ordering::Relaxed);
    }
}

impl LocationServer {
    fn is_silent(&self, now: Instant) -> bool {
        let at = self.silent_at.load(Ordering::Relaxed);
        at != 0 && now.saturating_since(Instant::from_nanos(at)) < SILENT_FOR
    }
}

/// The text by which the service finds a volume number (docs/protocol/vldb.md "4. Semantics").
pub(crate) fn address_of(id: VolumeId) -> String {
    id.0.to_string()
}

fn says_no_such_volume(code: AbortCode) -> bool {
    [AbortCode::VL_NOENT, AbortCode::VL_EMPTY, AbortCode::VL_ENTDELETED, AbortCode::VL_BADNAME]
        .contains(&code)
}

/// Another location server may answer: network codes, and those of a database without a quorum.
fn is_servers_own_trouble(code: AbortCode) -> bool {
    (code.0 < 0 && code != AbortCode::RXGEN_OPCODE)
        || (5376..5400).contains(&code.0)
        || code == AbortCode::VL_IO
}
