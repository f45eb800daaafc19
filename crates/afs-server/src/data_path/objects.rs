//! The files of a file server as the objects of a drive.

use std::sync::{Arc, Weak};

use afs_datapath::capability::TicketId;
use afs_datapath::session::{Failure, Objects, Opened, ReadRequest, RefusedRequest, StoreRequest, Taken};
use afs_rpc::BoxFuture;

use super::{reading, writing};
use crate::file::FileServer;

/// The files. Weak: the file server owns its drive.
pub(super) struct FileObjects(pub(super) Weak<FileServer>);

impl Objects for FileObjects {
    fn read(&self, request: ReadRequest) -> BoxFuture<'static, Result<Opened, Failure>> {
        let server = self.0.clone();
        Box::pin(async move {
            let server: Arc<FileServer> = server.upgrade().ok_or(Failure::Unavailable)?;
            reading::open(server, request).await
        })
    }

    fn store(&self, request: StoreRequest, bytes: Taken) -> BoxFuture<'static, Result<TicketId, Failure>> {
        let server = self.0.clone();
        Box::pin(async move {
            let server: Arc<FileServer> = server.upgrade().ok_or(Failure::Unavailable)?;
            writing::take(&server, request, bytes).await
        })
    }

    fn refused(&self, request: &RefusedRequest) {
        if let Some(server) = self.0.upgrade() {
            server.audit_refusal(request);
        }
    }
}
