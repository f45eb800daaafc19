//! Other connections are served while the ciphers of one are at work, and so are other calls of that one: real sockets and threads.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::fake;
use crate::gate;

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;

use afs_net::{System, Udp, UdpOptions};
use afs_rpc::{CallError, Connection, EnvExt, Security, sync::oneshot};
use afs_rx::NullServer;
use afs_wire::rpc::ServiceId;
use fake::*;
use gate::*;

const LENGTH: u64 = 5_000_000;
/// A packet after the first window: its handler is a task by then, and not on a receiving thread.
const LATER: u32 = 100;

struct Cell {
    system: Arc<System>,
    server: Udp,
    client: Udp,
    keeper: Keeper,
}

fn cell(work: Work, seq: u32) -> Cell {
    let (gate, keeper) = Gate::new(work, seq);
    let system = System::new().unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let receivers = NonZeroUsize::new(2).unwrap();
    let options = UdpOptions { address, receivers, ..UdpOptions::default() };
    let [server, client] = [(); 2].map(|()| Udp::bind_with(&system, options.clone()).unwrap());
    let security: Vec<Box<dyn afs_rpc::ServerSecurity>> =
        vec![Box::new(NullServer), Box::new(GateServer(gate))];
    server.rx().listen_with(Fake::new(system.env()).service(), security).unwrap();
    Cell { system, server, client, keeper }
}

type Moved = oneshot::Receiver<Result<u64, CallError>>;

impl Cell {
    fn connection(&self, security: Security) -> Connection {
        self.client.rx().connection(self.server.local_addr(), ServiceId::FILE, security)
    }

    fn gated(&self, user: &'static str) -> Connection {
        self.connection(Security::new(Arc::new(GateSource(user))))
    }

    fn store(&self) -> Moved {
        let connection = self.gated("held up");
        self.system.env().spawn_with_result(async move { store_pattern(&connection, 1, LENGTH).await })
    }

    fn fetch(&self) -> Moved {
        let connection = self.gated("held up");
        self.system.env().spawn_with_result(async move { fetch_pattern(&connection, 1, LENGTH).await })
    }

    /// Others are served while a cipher is blocked, and the call continues once it is released.
    fn serves_others_meanwhile(self, held_up: Moved) {
        self.keeper.reached.recv().unwrap();
        let other = self.connection(Security::null());
        for vnode in 1..20 {
            let answer = self.system.block_on(ask_status(&other, vnode));
            assert_eq!(answer.unwrap().length, u64::from(vnode));
        }
        let moved = self.system.block_on(fetch_pattern(&other, 1, LENGTH));
        assert_eq!(moved, Ok(LENGTH));
        // The ciphers of another connection under the same class, too.
        let other = self.gated("other");
        assert_eq!(self.system.block_on(fetch_pattern(&other, 1, LENGTH)), Ok(LENGTH));
        assert_eq!(self.system.block_on(store_pattern(&other, 1, LENGTH)), Ok(LENGTH));
        // And other calls of the connection itself.
        let same = self.gated("held up");
        assert_eq!(self.system.block_on(fetch_pattern(&same, 1, LENGTH)), Ok(LENGTH));
        assert_eq!(self.system.block_on(store_pattern(&same, 1, LENGTH)), Ok(LENGTH));
        self.keeper.go.send(()).unwrap();
        assert_eq!(self.system.block_on(held_up).unwrap(), Ok(LENGTH));
    }
}

#[test]
fn others_are_served_while_a_packet_is_opened() {
    let cell = cell(Work::Open, LATER);
    let store = cell.store();
    cell.serves_others_meanwhile(store);
}

/// Whichever thread seals, receiving threads included.
#[test]
fn others_are_served_while_a_packet_is_sealed() {
    let cell = cell(Work::Seal, LATER);
    let fetch = cell.fetch();
    cell.serves_others_meanwhile(fetch);
}
