//! Servers of one database, tried in turn, with the last that replied first.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use afs_rpc::sync::{Notified, Notify};
use afs_rpc::{CallError, CallOptions, Connection, Rx, Security};
use afs_wire::error::AbortCode;
use afs_wire::rpc::{Request, ServiceId};

/// Time-outs for one server, before the next is tried.
const PATIENCE: CallOptions =
    CallOptions { dead: Some(Duration::from_secs(6)), hard: Some(Duration::from_secs(30)) };

/// The servers of one database of a cell. The server that replied last is called first.
pub struct DatabaseServers {
    servers: Vec<Connection>,
    preferred: AtomicUsize,
    moved: Notify,
}

impl DatabaseServers {
    /// The `service` at `servers`, called by `rx` with `security`.
    pub fn new(
        rx: &Rx,
        service: ServiceId,
        servers: impl IntoIterator<Item = SocketAddr>,
        security: &Security,
    ) -> Self {
        let connection = |peer| rx.connection(peer, service, security.clone()).with_options(PATIENCE);
        DatabaseServers {
            servers: servers.into_iter().map(connection).collect(),
            preferred: AtomicUsize::new(0),
            moved: Notify::new(),
        }
    }

    /// Calls one server after the other until one gives a reply of its own (docs/protocol vldb.md "8. Ubik as
    /// seen by tools and clients").
    ///
    /// # Errors
    /// The code with which a server refused, or the error at the last one.
    pub async fn call<R: Request + Sync>(&self, request: &R) -> Result<R::Reply, CallError>
    where
        R::Reply: Send,
    {
        let first = self.preferred.load(Ordering::Relaxed);
        let mut last = CallError::Closed;
        for step in 0..self.servers.len() {
            let index = (first + step) % self.servers.len();
            let Some(server) = self.servers.get(index) else { continue };
            match server.call(request).await {
                Err(error) if is_of_the_server(&error) => last = error,
                answer => {
                    if self.preferred.swap(index, Ordering::Relaxed) != index {
                        self.moved.notify_waiters();
                    }
                    return answer;
                }
            }
        }
        Err(last)
    }

    /// Ready when another server than now has become the first that is called.
    pub(super) fn other_preferred(&self) -> Notified<'_> {
        self.moved.notified()
    }
}

/// Whether another server may succeed.
fn is_of_the_server(error: &CallError) -> bool {
    match error {
        CallError::Abort(code) => code.0 < 0 || matches!(*code, AbortCode::UNOQUORUM | AbortCode::UNOTSYNC),
        _ => true,
    }
}
