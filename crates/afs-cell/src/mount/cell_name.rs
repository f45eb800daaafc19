//! Query of overseers for the name of the cell of their servers.

use afs_net::{System, Udp};
use afs_rpc::{CallOptions, Security};
use afs_wire::bos::GetCellName;
use afs_wire::rpc::ServiceId;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// How long is waited for the first answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// From the file service's port to that of the overseer.
const PORT_OFFSET: u16 = 7;

/// The name that the first of the servers answers with that says anything; `None` if none does: not every host runs an
/// overseer.
pub(super) fn of(system: &Arc<System>, udp: &Udp, servers: &[Ipv4Addr], base_port: u16) -> Option<String> {
    let (tell, told) = channel();
    for server in servers {
        let peer = SocketAddr::from((*server, base_port.saturating_add(PORT_OFFSET)));
        let connection = udp.rx().connection(peer, ServiceId::OVERSEER, Security::null());
        let connection = connection.with_options(CallOptions { dead: Some(PATIENCE), hard: Some(PATIENCE) });
        let tell = tell.clone();
        system.env().spawn(Box::pin(async move {
            if let Ok(reply) = connection.call(&GetCellName {}).await {
                let _ = tell.send(reply.name.to_text());
            }
        }));
    }
    // With the last of those that ask, the channel ends.
    drop(tell);
    told.recv_timeout(PATIENCE).ok().filter(|name| !name.is_empty())
}
