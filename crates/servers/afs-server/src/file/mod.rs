//! The calls of the file service, one file a family.
//!
//! The order of checks is always that of docs/protocol fileserver.md "7. Operation semantics and errors": the
//! fid is valid, the volume is on line, the object exists, it has the right type, the caller has the right.
//! Changes repeat the checks inside the transaction, where no other change can intervene.

mod acl;
mod addresses;
mod broken;
mod bulk;
mod busy;
mod capabilities;
mod capability_again;
mod change;
mod change_list;
mod close_past;
mod closing_modes;
mod collecting;
mod commands;
mod commits;
mod create;
mod delivery;
mod fetch;
mod gauges;
mod info;
mod layout;
mod layout_list;
mod lease;
mod link;
mod list_again;
mod lock;
mod object;
mod obsolete;
mod past;
mod promises;
mod recalls;
mod remove;
mod rename;
mod rooms;
pub(crate) mod server;
mod start;
mod statistics;
mod status;
mod store;
pub(crate) mod store_change;
mod store_ranges;
pub(crate) mod stores;
pub(crate) mod storing;
pub(crate) mod ticket;
mod transfer;
mod volume;

#[cfg(test)]
mod cut_streams;
#[cfg(test)]
mod tests;

pub use server::FileServer;
pub use start::{FileServerConfig, FileServerLimits};
pub use statistics::{Statistics, StatisticsNow};
pub(crate) use ticket::Tickets;

use std::sync::Arc;

use afs_rpc::{ServerCall, Table};
use afs_wire::error::AbortCode;
use afs_wire::rpc::Streamed;

use crate::audit::Described;
use crate::call_context::CallContext;

/// Registers every call of the service.
pub(crate) fn add_all(table: Table<FileServer>) -> Table<FileServer> {
    let table = fetch::add(table);
    let table = store::add(table);
    let table = store_ranges::add(table);
    let table = status::add(table);
    let table = bulk::add(table);
    let table = acl::add(table);
    let table = create::add(table);
    let table = remove::add(table);
    let table = rename::add(table);
    let table = link::add(table);
    let table = change_list::add(table);
    let table = lease::add(table);
    let table = lock::add(table);
    let table = volume::add(table);
    let table = promises::add(table);
    let table = capabilities::add(table);
    let table = layout::add(table);
    let table = commands::add(table);
    let table = rooms::add(table);
    let table = commits::add(table);
    let table = info::add(table);
    obsolete::add(table)
}

/// Registers `operation` for `R`, for clients that are identified and ready, and records the outcome.
fn call<R, F>(
    table: Table<FileServer>,
    operation: impl Fn(Arc<FileServer>, Arc<CallContext>, R) -> F + Send + Sync + 'static,
) -> Table<FileServer>
where
    R: Described,
    F: Future<Output = Result<R::Reply, AbortCode>> + Send + 'static,
{
    let operation = Arc::new(operation);
    table.call::<R, _, _, AbortCode>(move |server: Arc<FileServer>, caller, request| {
        let operation = operation.clone();
        async move {
            let object = server.guard.object(&request);
            let outcome = match server.admit(&caller, R::KIND).await {
                Ok(context) => {
                    let context = Arc::new(context);
                    server.wait_for_object(&request.object(), R::KIND).await;
                    let done = operation(server.clone(), context.clone(), request).await;
                    done.map_err(|code| context.code(code))
                }
                Err(code) => Err(code),
            };
            let code = outcome.as_ref().err().copied().unwrap_or(AbortCode::OK);
            server.guard.note::<R>(&caller, object, code);
            outcome
        }
    })
}

/// Registers `operation` for the split call `R`, whose bytes it moves, and records the outcome.
fn streamed<R, F>(
    table: Table<FileServer>,
    operation: impl Fn(Arc<FileServer>, Arc<CallContext>, ServerCall, R) -> F + Send + Sync + 'static,
) -> Table<FileServer>
where
    R: Described + Streamed,
    F: Future<Output = Result<(), (ServerCall, AbortCode)>> + Send + 'static,
{
    let operation = Arc::new(operation);
    table.streamed::<R, _, _>(move |server: Arc<FileServer>, call: ServerCall, request| {
        let operation = operation.clone();
        async move {
            let (caller, object) = (call.caller().clone(), server.guard.object(&request));
            let code = match server.admit(&caller, R::KIND).await {
                Ok(context) => {
                    let context = Arc::new(context);
                    server.wait_for_object(&request.object(), R::KIND).await;
                    let done = operation(server.clone(), context.clone(), call, request).await;
                    done.map_or_else(|(call, code)| refuse(call, context.code(code)), |()| AbortCode::OK)
                }
                Err(code) => refuse(call, code),
            };
            server.guard.note::<R>(&caller, object, code);
        }
    })
}

fn refuse(call: ServerCall, code: AbortCode) -> AbortCode {
    call.abort(code);
    code
}
