//! Command, a call of our own: the file server has a drive move a chunk for a client, or signs an address in an object store
//! (docs/protocol/extensions.md "Commands").

use std::sync::Arc;

use afs_rpc::Table;
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, CommandReply, ObjectAddress, Order};

use super::server::FileServer;
use crate::call_context::CallContext;

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    super::call(table, |server: Arc<FileServer>, context, call: fs::Command| async move {
        server.command(&context, &call).await
    })
}

impl FileServer {
    async fn command(&self, context: &CallContext, call: &fs::Command) -> Result<CommandReply, AbortCode> {
        let of = (call.fid, call.drive);
        match &call.order {
            Order::Send(part) => self.deliver(context, of, part).await?,
            Order::Take(chunk) => self.collect(context, of, chunk).await?,
            Order::Address(chunk) => return self.address(context, of, chunk).await,
        }
        Ok(CommandReply { address: ObjectAddress::default(), start: 0, length: 0, seconds: 0 })
    }
}
