//! Order of several servers: those that reply to a probe first, so that an unreachable server does not delay a command.

use afs_net::{System, Udp};
use afs_rpc::{CallOptions, Security};
use afs_wire::rpc::ServiceId;
use afs_wire::vl::ProbeServer;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// How long the probe waits for the first reply. Without a reply all servers are tried in their order, with the usual
/// time-outs.
const PATIENCE: Duration = Duration::from_secs(2);

/// The servers; those first that have replied when the first reply arrives. A refusal is a reply. A single server is
/// not probed.
pub(in crate::commands) fn by_first_reply(
    system: &Arc<System>,
    udp: &Udp,
    servers: &[SocketAddr],
) -> Vec<SocketAddr> {
    let mut order = servers.to_vec();
    if servers.len() < 2 {
        return order;
    }
    let (tell, told) = channel();
    for server in servers.iter().copied() {
        let connection = udp.rx().connection(server, ServiceId::LOCATION, Security::null());
        let connection = connection.with_options(CallOptions { dead: Some(PATIENCE), hard: Some(PATIENCE) });
        let tell = tell.clone();
        system.env().spawn(Box::pin(async move {
            let answer = connection.call(&ProbeServer {}).await;
            if !answer.is_err_and(|error| error.is_silence()) {
                let _ = tell.send(server);
            }
        }));
    }
    // The channel closes when the last probe has ended.
    drop(tell);
    let answered: Vec<SocketAddr> = told.recv_timeout(PATIENCE).into_iter().chain(told.try_iter()).collect();
    order.sort_by_key(|server| answered.iter().position(|other| other == server).unwrap_or(usize::MAX));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn a_server_that_is_away_comes_last() {
        let system = System::with_workers(1).unwrap();
        let bind = |address: &str| {
            let at = SocketAddr::from((address.parse::<Ipv4Addr>().unwrap(), 0));
            Udp::bind(&system, at, afs_rx::Config::default()).unwrap()
        };
        // The server has no such service, and replies that.
        let (server, client) = (bind("127.0.0.1"), bind("127.0.0.1"));
        let there = server.local_addr();
        let away = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 9), there.port()));
        assert_eq!(by_first_reply(&system, &client, &[away, there]), [there, away]);
        assert_eq!(by_first_reply(&system, &client, &[away]), [away]);
    }
}
