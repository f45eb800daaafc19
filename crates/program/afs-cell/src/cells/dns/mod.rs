//! Look-up of cells in DNS: SRV records of the location service (RFC 5864), else AFSDB records (RFC 1183), by a stub resolver that asks the
//! servers of the machine's configuration.

mod exchange;
mod lookup;
pub(crate) mod message;
mod resolv_conf;

use super::CellsError;
use crate::error::CellResult;
use afs_rpc::{BoxFuture, EnvExt, EnvRef};
use afs_venus::{CellResolver, Resolved};
use afs_wire::ids::CellName;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// The port of DNS.
const PORT: u16 = 53;
/// The machine's configuration.
const RESOLV_CONF: &str = "/etc/resolv.conf";
/// Longest file that is read.
const LEN_MAX: u64 = 64 << 10;

/// Servers of DNS, in the order in which they are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsServers(Vec<SocketAddr>);

impl DnsServers {
    /// One server.
    #[must_use]
    pub fn one(server: SocketAddr) -> Self {
        Self(vec![server])
    }

    /// Those of `/etc/resolv.conf`, at most three; this machine if it names none, as resolver(5) says.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of_machine() -> CellResult<Self> {
        let path = Path::new(RESOLV_CONF);
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(LEN_MAX).read_to_end(&mut bytes));
        read.map_err(|error| CellsError::Resolver { path: path.to_owned(), error })?;
        let servers = resolv_conf::servers(&String::from_utf8_lossy(&bytes));
        Ok(Self(servers.into_iter().map(|ip: IpAddr| SocketAddr::new(ip, PORT)).collect()))
    }
}

/// The resolver. A look-up takes one of the process's blocking threads, for five seconds at most.
#[derive(Clone)]
pub struct Dns {
    env: EnvRef,
    servers: DnsServers,
}

impl Dns {
    /// A resolver that asks these servers. Nothing is sent yet.
    #[must_use]
    pub fn new(env: EnvRef, servers: DnsServers) -> Self {
        Self { env, servers }
    }

    /// Looks a cell up in this thread.
    #[must_use]
    pub fn resolve_now(&self, cell: &CellName) -> Resolved {
        lookup::of_cell(&exchange::Exchange::new(&self.env, &self.servers.0), cell)
    }
}

impl CellResolver for Dns {
    fn resolve(&self, cell: &CellName) -> BoxFuture<'static, Resolved> {
        let (me, cell) = (self.clone(), cell.clone());
        let work = self.env.run_blocking(move || me.resolve_now(&cell));
        Box::pin(async move { work.await.unwrap_or_else(|_| Resolved::Failed("the mount ends".into())) })
    }
}
