//! The calls of the file service, one file a family.
//!
//! The order of checks is everywhere that of docs/protocol fileserver.md "7. Operation semantics and errors": the
//! fid makes sense, the volume serves, the object exists, it is of the right type, the caller may. What changes
//! something checks again inside the transaction, where nothing can come in between.

mod acl;
mod bulk;
mod create;
mod fetch;
mod link;
mod lock;
mod object;
mod obsolete;
mod promises;
mod remove;
mod rename;
mod server;
mod status;
mod store;
mod volume;

use std::sync::Arc;

use afs_rpc::Table;
use afs_wire::error::AbortCode;
use afs_wire::rpc::Request;

use crate::server::{FileServer, Visit};

/// Every call of the service.
pub(crate) fn add_all(table: Table<FileServer>) -> Table<FileServer> {
    let table = fetch::add(table);
    let table = store::add(table);
    let table = status::add(table);
    let table = bulk::add(table);
    let table = acl::add(table);
    let table = create::add(table);
    let table = remove::add(table);
    let table = rename::add(table);
    let table = link::add(table);
    let table = lock::add(table);
    let table = volume::add(table);
    let table = promises::add(table);
    let table = server::add(table);
    obsolete::add(table)
}

/// Answers `R` with `operation`, for clients that are known and in order.
fn call<R, F>(
    table: Table<FileServer>,
    operation: impl Fn(Arc<FileServer>, Arc<Visit>, R) -> F + Send + Sync + 'static,
) -> Table<FileServer>
where
    R: Request,
    F: Future<Output = Result<R::Reply, AbortCode>> + Send + 'static,
{
    let operation = Arc::new(operation);
    table.call::<R, _, _, AbortCode>(move |server: Arc<FileServer>, caller, request| {
        let operation = operation.clone();
        async move {
            let visit = Arc::new(server.admit(&caller).await?);
            operation(server, visit.clone(), request).await.map_err(|code| visit.code(code))
        }
    })
}
