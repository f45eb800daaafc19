//! The voting service (Ubik) beside a database service: which server is the sync site, and in what state.
//!
//! Every database server takes changes, so each reports itself as the sync site; `udebug` sees a healthy
//! quorum, or a lost one (docs/protocol vldb.md "8. Ubik as seen by tools and clients").

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use afs_rpc::{BoxFuture, EnvRef, ServerCall, Service};
use afs_wire::error::AbortCode;
use afs_wire::rpc::ServiceId;

const DEBUG: u32 = 10_004;
const SIDE_DEBUG: u32 = 10_005;
const EXTENDED_DEBUG: u32 = 10_006;
const EXTENDED_SIDE_DEBUG: u32 = 10_007;

/// No server has that number.
const NO_SUCH_SERVER: AbortCode = AbortCode(2);
/// Sync site, newest database found and held, labelled, sent to all.
const HEALTHY: i32 = 0x1f;
/// Number of addresses in the reply about this server, and about another one beside its first.
const INTERFACES: usize = 256;
const OTHER_INTERFACES: usize = 255;

/// Whether the database can be changed, as far as this server knows.
pub type HasQuorum = Arc<dyn Fn() -> bool + Send + Sync>;

/// The voting service of a database.
pub struct VoteServer {
    env: EnvRef,
    address: Ipv4Addr,
    others: Vec<Ipv4Addr>,
    has_quorum: HasQuorum,
    started: i32,
}

impl VoteServer {
    /// A service for the port of a database service, for a single server with the address `address`.
    pub fn service(env: EnvRef, address: SocketAddr) -> Arc<dyn Service> {
        Self::among(env, address, &[], Arc::new(|| true))
    }

    /// As [`VoteServer::service`], for one of several servers that share a database.
    pub fn among(
        env: EnvRef,
        address: SocketAddr,
        others: &[Ipv4Addr],
        has_quorum: HasQuorum,
    ) -> Arc<dyn Service> {
        let started = env.wall().secs_u32() as i32;
        let address = match address.ip() {
            IpAddr::V4(address) => address,
            IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
        };
        Arc::new(VoteServer { env, address, others: others.to_vec(), has_quorum, started })
    }

    fn now(&self) -> i32 {
        self.env.wall().secs_u32() as i32
    }

    /// The label of the database: since when this server has it.
    fn version(&self) -> [i32; 2] {
        [self.started, 1]
    }

    fn debug(&self) -> Vec<i32> {
        let (now, host) = (self.now(), word(self.address));
        let quorum = (self.has_quorum)();
        let (yes, sync_host, sync_until) = if quorum { (1, host, i32::MAX) } else { (0, 0, 0) };
        let mut words = vec![now, now, host, yes, now, host, now, sync_host, now];
        words.extend(self.version());
        words.extend([self.started, 0]);
        let servers = self.others.len() as i32 + 1;
        words.extend([yes, sync_until, servers, 0, 0]);
        words.extend(self.version());
        let (active_write, tid_counter, read_locks, write_locks) = (0, 0, 0, 0);
        let recovery = if quorum { HEALTHY } else { 0 };
        words.extend([active_write, tid_counter, read_locks, write_locks, recovery, 0, 0, self.started]);
        padded(words, host, INTERFACES)
    }

    /// All that is known of another server is that a majority holds the database, perhaps that server among
    /// it.
    fn side(&self, number: i32) -> Option<Vec<i32>> {
        let other = self.others.get(usize::try_from(number).ok()?)?;
        let (now, up) = (self.now(), i32::from((self.has_quorum)()));
        let (voted, beacon, vote, current, beacon_since_down) = (now, now, up, up, up);
        let mut words = vec![word(*other), voted, beacon, vote];
        words.extend(self.version());
        words.extend([current, beacon_since_down, up]);
        let addresses = words.len();
        words.resize(addresses + OTHER_INTERFACES, 0);
        Some(words)
    }
}

fn word(address: Ipv4Addr) -> i32 {
    u32::from(address) as i32
}

fn padded(mut words: Vec<i32>, first: i32, addresses: usize) -> Vec<i32> {
    let before = words.len();
    words.push(first);
    words.resize(before + addresses, 0);
    words
}

impl Service for VoteServer {
    fn id(&self) -> ServiceId {
        ServiceId::UBIK_VOTE
    }

    fn serve(self: Arc<Self>, mut call: ServerCall) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let Ok(opcode) = call.read_opcode().await else {
                return call.abort(AbortCode::RXGEN_SS_UNMARSHAL);
            };
            let mut words = match opcode.0 {
                DEBUG | EXTENDED_DEBUG => self.debug(),
                SIDE_DEBUG | EXTENDED_SIDE_DEBUG => {
                    let Ok(rest) = call.read_to_end(4).await else {
                        return call.abort(AbortCode::RXGEN_SS_UNMARSHAL);
                    };
                    let number = rest.first_chunk::<4>().map(|bytes| i32::from_be_bytes(*bytes));
                    match number.and_then(|number| self.side(number)) {
                        Some(words) => words,
                        None => return call.abort(NO_SUCH_SERVER),
                    }
                }
                _ => return call.abort(AbortCode::RXGEN_OPCODE),
            };
            if matches!(opcode.0, EXTENDED_DEBUG | EXTENDED_SIDE_DEBUG) {
                let is_clone = 0;
                words.push(is_clone);
            }
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
            // A failure means that the caller is gone.
            if call.write(bytes.into()).await.is_ok() {
                let _ = call.finish().await;
            }
        })
    }
}
