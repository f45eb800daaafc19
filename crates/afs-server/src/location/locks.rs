//! Locking entries for the time of an operation.

use std::sync::Arc;

use afs_rpc::{Caller, Table};
use afs_wire::error::AbortCode;
use afs_wire::rpc::Nothing;
use afs_wire::vl;

use super::{LocationServer, code, convert, owner_only};

pub(super) fn add(table: Table<LocationServer>) -> Table<LocationServer> {
    table
        .call::<vl::SetLock, _, _, _>(|server: Arc<LocationServer>, caller, call: vl::SetLock| async move {
            server.counted(508, server.lock(&caller, &call).await)
        })
        .call::<vl::ReleaseLock, _, _, _>(
            |server: Arc<LocationServer>, caller, call: vl::ReleaseLock| async move {
                server.counted(509, server.unlock(&caller, &call).await)
            },
        )
}

impl LocationServer {
    async fn lock(&self, caller: &Caller, call: &vl::SetLock) -> Result<Nothing, AbortCode> {
        owner_only(caller)?;
        let kind = convert::kind(call.kind)?;
        self.db.lock(call.volume, kind, call.operation.0, self.now()).await.map_err(code)
    }

    async fn unlock(&self, caller: &Caller, call: &vl::ReleaseLock) -> Result<Nothing, AbortCode> {
        owner_only(caller)?;
        let (kind, release) = (convert::kind(call.kind)?, convert::release(call.release)?);
        self.db.unlock(call.volume, kind, release).await.map_err(code)
    }
}
