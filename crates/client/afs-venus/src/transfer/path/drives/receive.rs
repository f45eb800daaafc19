//! Bytes that a drive sends when the file server has commanded it: the client waits at the drive, and asks the file server meanwhile.

use std::ops::Range;
use std::sync::Arc;

use afs_datapath::capability::{DriveId, TransferId};
use afs_datapath::session::{Error, Failure, Handle};
use afs_drive::ChunkRef;
use afs_rpc::future::{Either, select};
use afs_rpc::{CallError, EnvExt};
use afs_wire::fs;
use afs_wire::rpc::Request;
use afs_wire::xdr::Fixed;
use bytes::Bytes;

use super::super::link::Link;
use super::read::Fetch;
use super::server_drives::ServerDrives;

impl ServerDrives {
    /// Receives a range of a chunk, which begins at a position of the file.
    pub(super) async fn receive(
        self: &Arc<Self>,
        fetch: &Fetch<'_>,
        (link, handle): (&Link, &Handle),
        (drive, chunk): (DriveId, ChunkRef),
        (position, range): (u64, Range<u32>),
    ) -> Result<Bytes, Error> {
        let transfer = self.common.env.random_bytes();
        let number = TransferId(u128::from_be_bytes(transfer));
        let mut received = Box::pin(link.session.receive(handle, number, (chunk, range)));
        let (_, fid, version) = fetch.key;
        let drive = Fixed(drive.0.to_be_bytes());
        let command = fs::Deliver { fid, version, position, drive, transfer: Fixed(transfer) };
        self.common.counters.call(fs::Deliver::NAME);
        let commanded = Box::pin(fetch.target.connection.call(&command));
        match select(&mut received, commanded).await {
            Either::Left(received) => received,
            Either::Right(Ok(_)) => received.await,
            Either::Right(Err(why)) => Err(refused(&why)),
        }
    }
}

/// The file server has not commanded it. Whatever the reason, it is read there, and a layout is asked for anew.
fn refused(why: &CallError) -> Error {
    tracing::debug!(%why, "a transfer was not commanded");
    Failure::Unavailable.into()
}
