//! The call by which file servers without the database follow its changes (docs/protocol/extensions.md "Following the protection
//! database").

use std::time::Duration;

use afs_rpc::future::select;
use afs_rpc::{EnvExt, Table};
use afs_wire::error::AbortCode;
use afs_wire::pt;

use super::{ProtectionServer, Server, code};
use crate::guard::administrators;

/// How long a call waits for a change: less than a caller's patience with a call.
const WAIT_MAX: Duration = Duration::from_secs(15);

pub(super) fn add(table: Table<ProtectionServer>) -> Table<ProtectionServer> {
    administrators(table, |server: Server, call: pt::WaitForChange| async move {
        server.wait_for_change(call.known).await
    })
}

impl ProtectionServer {
    async fn wait_for_change(&self, known: u64) -> Result<pt::WaitForChangeReply, AbortCode> {
        select(self.db.changed(known), self.env.sleep(WAIT_MAX)).await;
        let version = self.db.version();
        // A copy of the database that is cut off refuses to be read: what it knows may be old.
        self.db.max_ids().await.map_err(code)?;
        Ok(pt::WaitForChangeReply { version })
    }
}
