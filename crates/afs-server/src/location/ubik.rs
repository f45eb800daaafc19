//! What tools ask the voting service of a replicated database: who is in charge, and is all well?
//!
//! There is one server and it is in charge; `udebug` sees a healthy quorum of one
//! (docs/protocol vldb.md "8. Ubik as seen by tools and clients").

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use afs_rpc::{BoxFuture, EnvRef, ServerCall, Service};
use afs_wire::error::AbortCode;
use afs_wire::rpc::ServiceId;

const DEBUG: u32 = 10_004;
const SIDE_DEBUG: u32 = 10_005;
const EXTENDED_DEBUG: u32 = 10_006;
const EXTENDED_SIDE_DEBUG: u32 = 10_007;

/// No other server has that number.
const NO_SUCH_SERVER: AbortCode = AbortCode(2);
/// Sync site, newest database found and held, labelled, sent to all.
const HEALTHY: i32 = 0x1f;
/// Addresses in the answer.
const INTERFACES: usize = 256;

/// The voting service of a database that has one server.
pub struct VoteServer {
    env: EnvRef,
    address: SocketAddr,
    started: i32,
}

impl VoteServer {
    /// A service to be offered beside the location service, which is reached at `address`.
    pub fn service(env: EnvRef, address: SocketAddr) -> Arc<dyn Service> {
        let started = env.wall().secs_u32() as i32;
        Arc::new(VoteServer { env, address, started })
    }

    fn debug(&self) -> Vec<i32> {
        let now = self.env.wall().secs_u32() as i32;
        let host = match self.address.ip() {
            IpAddr::V4(address) => u32::from(address) as i32,
            IpAddr::V6(_) => 0,
        };
        let version = [self.started, 1];
        let mut words = vec![now, now, host, 1, now, host, now, host, now];
        words.extend(version);
        words.extend([self.started, 0]);
        let (sync_site, sync_until, servers) = (1, i32::MAX, 1);
        words.extend([sync_site, sync_until, servers, 0, 0]);
        words.extend(version);
        let (active_write, tid_counter, read_locks, write_locks) = (0, 0, 0, 0);
        words.extend([active_write, tid_counter, read_locks, write_locks, HEALTHY, 0, 0, self.started]);
        let addresses = words.len();
        words.push(host);
        words.resize(addresses + INTERFACES, 0);
        words
    }
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
            let words = match opcode.0 {
                DEBUG => self.debug(),
                EXTENDED_DEBUG => {
                    let mut words = self.debug();
                    let is_clone = 0;
                    words.push(is_clone);
                    words
                }
                SIDE_DEBUG | EXTENDED_SIDE_DEBUG => return call.abort(NO_SUCH_SERVER),
                _ => return call.abort(AbortCode::RXGEN_OPCODE),
            };
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
            // A caller that is gone need not be told.
            if call.write(bytes.into()).await.is_ok() {
                let _ = call.finish().await;
            }
        })
    }
}
