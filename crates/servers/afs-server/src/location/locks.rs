//! Location service calls that lock an entry for the time of an operation.

use std::sync::Arc;

use afs_rpc::Table;
use afs_wire::error::AbortCode;
use afs_wire::rpc::Nothing;
use afs_wire::vl;

use super::{LocationServer, code, convert};
use crate::guard::administrators;

pub(super) fn add(table: Table<LocationServer>) -> Table<LocationServer> {
    type Server = Arc<LocationServer>;
    let table =
        administrators(table, |server: Server, call: vl::SetLock| async move { server.lock(&call).await });
    administrators(table, |server: Server, call: vl::ReleaseLock| async move { server.unlock(&call).await })
}

impl LocationServer {
    async fn lock(&self, call: &vl::SetLock) -> Result<Nothing, AbortCode> {
        let kind = convert::kind(call.kind)?;
        self.db.lock(call.volume, kind, call.operation.0, self.now()).await.map_err(code)
    }

    async fn unlock(&self, call: &vl::ReleaseLock) -> Result<Nothing, AbortCode> {
        let (kind, release) = (convert::kind(call.kind)?, convert::release(call.release)?);
        self.db.unlock(call.volume, kind, release).await.map_err(code)
    }
}
