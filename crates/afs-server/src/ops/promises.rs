//! GiveUpCallBacks and GiveUpAllCallBacks.

use std::sync::Arc;

use afs_rpc::Table;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs;

use crate::server::{FileServer, Visit};

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    let table = super::call(table, |server: Arc<FileServer>, visit, call: fs::GiveUpCallBacks| async move {
        server.give_up(&visit, &call)
    });
    super::call(table, |server: Arc<FileServer>, visit, _: fs::GiveUpAllCallBacks| async move {
        let visit: Arc<Visit> = visit;
        // A caller cannot give up promises in a volume that is closed to its connection.
        if !server.guard.policy().all_volumes_are_open(&visit.identity) {
            return Err(Errno::EACCES.to_uae());
        }
        server.clients.callbacks().forget_host(visit.host.id());
        Ok(())
    })
}

impl FileServer {
    fn give_up(&self, visit: &Visit, call: &fs::GiveUpCallBacks) -> Result<(), AbortCode> {
        if call.callbacks.len() > call.fids.len() {
            return Err(Errno::EINVAL.to_uae());
        }
        for fid in call.fids.iter().filter(|fid| self.is_open(visit, fid.volume)) {
            self.clients.callbacks().give_up(*fid, visit.host.id(), self.clients.now());
        }
        Ok(())
    }
}
