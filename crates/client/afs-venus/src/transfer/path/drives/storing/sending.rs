//! Bytes that a drive takes when the file server has commanded it: the client waits at the drive, and asks the file server meanwhile.

use afs_datapath::capability::TransferId;
use afs_datapath::frame::Content;
use afs_datapath::session::{Error, Failure};
use afs_drive::ChunkRef;
use afs_rpc::future::{Either, select};
use afs_rpc::{CallError, EnvExt};
use afs_wire::fs;
use afs_wire::ids::Fid;
use afs_wire::rpc::Request;
use afs_wire::xdr::Fixed;
use bytes::Bytes;

use super::super::server_drives::ServerDrives;
use super::asking::{AtDrive, Room};
use crate::calls::Target;

impl ServerDrives {
    /// Sends a chunk into a room for a file.
    pub(super) async fn send_to(
        &self,
        (target, fid, room): (&Target, Fid, &Room),
        at: &AtDrive,
        bytes: Bytes,
    ) -> Result<ChunkRef, Error> {
        let transfer = self.common.env.random_bytes();
        let number = TransferId(u128::from_be_bytes(transfer));
        let Content { length, crc: checksum } = Content::of(&bytes);
        let mut sent = Box::pin(at.link.session.send(&at.handle, number, bytes));
        let (room, drive, transfer) = (room.number, at.drive, Fixed(transfer));
        let command = fs::Collect { fid, room, drive, transfer, length, checksum };
        self.common.counters.call(fs::Collect::NAME);
        let commanded = Box::pin(target.connection.call(&command));
        match select(&mut sent, commanded).await {
            // A drive that has waited for the command has not failed.
            Either::Left(Err(Error::Stalled | Error::Failed(Failure::Stalled))) => Err(not_commanded(None)),
            Either::Left(sent) => sent,
            Either::Right(Ok(_)) => sent.await,
            Either::Right(Err(why)) => Err(not_commanded(Some(why))),
        }
    }
}

/// Whatever the reason, the file server stores the bytes itself.
fn not_commanded(why: Option<CallError>) -> Error {
    tracing::debug!(?why, "a transfer to a drive was not commanded");
    Failure::Unavailable.into()
}
