//! Clients with sockets of their own in a namespace.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use afs_net::{System, Udp};
use afs_rpc::{CallError, CallOptions, Connection, Level, Security, ServerSecurity, Table};
use afs_rx::NullServer;
use afs_wire::error::AbortCode;
use afs_wire::ids::Uuid;
use afs_wire::rpc::{Request, ServiceId};
use andrew_tests::live::netns::Netns;
use andrew_tests::sim::identities::Keys;

use super::setup::server_at;

/// Longest time that a call may take.
const CALL_MAX: Duration = Duration::from_secs(20);
/// Pause after a refusal because the server is busy.
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// A client of the cell.
pub struct Client {
    system: Arc<System>,
    files: Connection,
    udp: Udp,
}

/// A client's identity and its credentials.
pub struct Who {
    name: Uuid,
    security: Security,
    /// The security class of calls from servers to this client.
    class: Option<Box<dyn ServerSecurity>>,
}

impl Who {
    /// A client without a user.
    pub fn anonymous(number: u16) -> Self {
        Self { name: name(number), security: Security::null(), class: None }
    }

    /// A user with a token made with the cell's keys.
    pub fn user(system: &Arc<System>, keys: &Keys, user: &str, number: u16) -> Self {
        let (security, class) = keys.token(&system.env(), user.to_owned(), Level::Crypt, name(number));
        Self { name: name(number), security, class: Some(class) }
    }
}

fn name(number: u16) -> Uuid {
    let mut uuid = [7; 16];
    uuid[..2].copy_from_slice(&number.to_be_bytes());
    Uuid(uuid)
}

impl Client {
    /// A client at an address of the namespace. `callback_service` makes its callback service, for a client of that name.
    pub fn new(
        system: &Arc<System>,
        netns: &Netns,
        address: Ipv4Addr,
        callback_service: impl Fn(Uuid) -> Table<Uuid>,
        who: Who,
    ) -> Self {
        let address = SocketAddr::from((address, 0));
        let udp = netns.inside(|| Udp::bind(system, address, afs_rx::Config::default())).unwrap();
        let classes = [Box::new(NullServer) as Box<dyn ServerSecurity>].into_iter().chain(who.class);
        udp.rx().listen_with(Arc::new(callback_service(who.name)), classes.collect()).unwrap();
        let files = connect(&udp, 7000, ServiceId::FILE, who.security);
        Self { system: system.clone(), files, udp }
    }

    /// A service of the cell without security.
    pub fn anonymous(&self, port: u16, service: ServiceId) -> Connection {
        connect(&self.udp, port, service, Security::null())
    }

    /// The file service.
    pub fn files(&self) -> &Connection {
        &self.files
    }

    /// Calls the file service.
    pub fn call<R: Request>(&self, request: &R) -> Result<R::Reply, String> {
        self.system.block_on(self.files.call(request)).map_err(|error| error.to_string())
    }

    /// As [`Client::call`], for a client without a token: retries while the server is busy, as clients do.
    pub fn call_until_free<R: Request>(&self, request: &R) -> Result<R::Reply, String> {
        let begun = Instant::now();
        loop {
            match self.system.block_on(self.files.call(request)) {
                Err(CallError::Abort(AbortCode::VBUSY)) if begun.elapsed() < CALL_MAX => {
                    std::thread::sleep(BUSY_PAUSE);
                }
                answer => return answer.map_err(|error| error.to_string()),
            }
        }
    }
}

fn connect(udp: &Udp, port: u16, service: ServiceId, security: Security) -> Connection {
    let connection = udp.rx().connection(server_at(port), service, security);
    connection.with_options(CallOptions { dead: None, hard: Some(CALL_MAX) })
}
