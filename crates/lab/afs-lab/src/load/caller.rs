//! Callback service of a load generator.

use std::sync::Arc;

use afs_rpc::{Caller, Env, EnvExt, Service, Table};
use afs_wire::cb;
use afs_wire::error::AbortCode;
use afs_wire::ids::Uuid;
use afs_wire::rpc::ServiceId;

/// The callback service of a caller that caches nothing: it gives its identity, and has nothing to drop.
///
/// A file server identifies its clients before it serves them (`docs/protocol/callback.md` "5.1 First
/// contact"): listen with this on the socket that makes the calls.
#[must_use]
pub fn callbacks(env: &dyn Env) -> Arc<dyn Service> {
    let uuid = Arc::new(Uuid::from_random(env.random_bytes()));
    let table = Table::new(ServiceId::CALLBACK, uuid)
        .call(|uuid: Arc<Uuid>, _: Caller, _: cb::WhoAreYou| async move {
            let addresses = cb::InterfaceAddr { uuid: *uuid, ..Default::default() };
            Ok::<_, AbortCode>(cb::InterfaceAddrReply { addresses })
        })
        .call(|uuid: Arc<Uuid>, _: Caller, asked: cb::ProbeUuid| async move {
            if asked.client == *uuid { Ok(()) } else { Err(AbortCode(1)) }
        })
        .call(|_: Arc<Uuid>, _: Caller, _: cb::InitCallBackState3| async { Ok::<_, AbortCode>(()) })
        .call(|_: Arc<Uuid>, _: Caller, _: cb::InitCallBackState| async { Ok::<_, AbortCode>(()) })
        .call(|_: Arc<Uuid>, _: Caller, _: cb::CallBack| async { Ok::<_, AbortCode>(()) })
        .call(|_: Arc<Uuid>, _: Caller, _: cb::Probe| async { Ok::<_, AbortCode>(()) });
    Arc::new(table)
}
