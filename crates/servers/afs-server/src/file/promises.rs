//! GiveUpCallBacks and GiveUpAllCallBacks.

use std::sync::Arc;

use afs_rpc::Table;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs;

use super::server::FileServer;
use crate::call_context::CallContext;

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    let table =
        super::call(table, |server: Arc<FileServer>, context, call: fs::GiveUpCallBacks| async move {
            server.give_up(&context, &call)
        });
    super::call(table, |server: Arc<FileServer>, context, _: fs::GiveUpAllCallBacks| async move {
        let context: Arc<CallContext> = context;
        // A caller cannot give up promises in a volume that is closed to its connection.
        if !server.guard.policy().all_volumes_are_open(&context.identity) {
            return Err(Errno::EACCES.to_uae());
        }
        server.clients.callbacks().forget_host(context.host.id());
        Ok(())
    })
}

impl FileServer {
    fn give_up(&self, context: &CallContext, call: &fs::GiveUpCallBacks) -> Result<(), AbortCode> {
        if call.callbacks.len() > call.fids.len() {
            return Err(Errno::EINVAL.to_uae());
        }
        for fid in call.fids.iter().filter(|fid| self.is_open(context, fid.volume)) {
            self.clients.callbacks().give_up(*fid, context.host.id(), self.clients.now());
        }
        Ok(())
    }
}
