//! Query of the overseers for the name of their cell.

use afs_net::{System, Udp};
use afs_rpc::{CallOptions, Security};
use afs_wire::bos::GetCellName;
use afs_wire::rpc::ServiceId;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// How long the query waits for the first reply.
const PATIENCE: Duration = Duration::from_secs(2);
/// Offset of the overseer's port from that of the file service.
const PORT_OFFSET: u16 = 7;

/// The cell name in the first reply of a server that has one; `None` without such a reply, since not every host runs an
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
    // The channel closes with the last of the queries.
    drop(tell);
    told.recv_timeout(PATIENCE).ok().filter(|name| !name.is_empty())
}
