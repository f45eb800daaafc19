//! The files of a file server, and the streams of its volumes, as the objects of a drive.

use std::sync::{Arc, Weak};

use afs_datapath::capability::{Refusal, TicketId};
use afs_datapath::session::{
    Failure, Objects, Opened, Pieces, ReadRequest, RefusedRequest, StoreRequest, StreamRequest, Taken,
};
use afs_rpc::BoxFuture;
use afs_rpc::sync::oneshot;

use super::{Begun, reading, writing};
use crate::file::FileServer;

/// The files. Weak: the file server owns its drive.
pub(crate) struct FileObjects(pub(crate) Weak<FileServer>);

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

    fn open_stream(&self, request: StreamRequest) -> BoxFuture<'static, Result<Box<dyn Pieces>, Failure>> {
        let server = self.0.clone();
        Box::pin(async move {
            let server: Arc<FileServer> = server.upgrade().ok_or(Failure::Unavailable)?;
            let begun = server.data_path.streams().begin(&request)?;
            let (opened, pieces) = oneshot::channel();
            begun.send(Begun::Wanted(opened)).map_err(|_| Refusal::Revoked)?;
            pieces.await.unwrap_or(Err(Failure::Unavailable))
        })
    }

    fn take_stream(&self, request: StreamRequest, bytes: Taken) -> BoxFuture<'static, Result<(), Failure>> {
        let server = self.0.clone();
        Box::pin(async move {
            let server: Arc<FileServer> = server.upgrade().ok_or(Failure::Unavailable)?;
            let begun = server.data_path.streams().begin(&request)?;
            let (ended, end) = oneshot::channel();
            begun.send(Begun::Coming(bytes, ended)).map_err(|_| Refusal::Revoked)?;
            end.await.unwrap_or(Err(Failure::Unavailable))
        })
    }
}
