//! Endpoints of simulated machines, and what keeps them open.

use std::net::SocketAddr;
use std::sync::Arc;

use afs_rpc::{EnvRef, Limits, Rx, Service};
use afs_sim::{NodeId, World};

/// An endpoint with the default settings, at an address of a machine, in its present life.
#[must_use]
pub fn endpoint(world: &World, node: NodeId, at: SocketAddr) -> Rx {
    world.rx(node, world.env(node), at, afs_rx::Config::default(), Limits::default())
}

/// Keeps something for as long as the present life of its machine: an endpoint that is dropped closes its port.
pub fn keep<T: Send + 'static>(env: &EnvRef, held: T) {
    env.spawn(Box::pin(async move {
        let _held = held;
        std::future::pending::<()>().await;
    }));
}

/// Offers a service without security at an address, for as long as the present life of its machine.
///
/// # Panics
/// If the endpoint does not take the service.
pub fn serve(world: &World, node: NodeId, at: SocketAddr, service: Arc<dyn Service>) {
    let rx = endpoint(world, node, at);
    rx.listen(service).unwrap();
    keep(&world.env(node), rx);
}
