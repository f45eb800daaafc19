//! Transfers that the file server commands: the client waits at the drive, and asks the file server meanwhile.

use afs_datapath::capability::TransferId;
use afs_datapath::session::{Error, Failure};
use afs_rpc::future::{Either, select};
use afs_rpc::{CallError, EnvExt};
use afs_wire::fs::{self, Order};
use afs_wire::ids::Fid;
use afs_wire::rpc::Request;
use afs_wire::xdr::Fixed;

use super::server_drives::ServerDrives;
use crate::calls::Target;

impl ServerDrives {
    /// A number for a transfer, as the drive and as the file server have it.
    pub(super) fn transfer(&self) -> (TransferId, Fixed<16>) {
        let number = self.common.env.random_bytes();
        (TransferId(u128::from_be_bytes(number)), Fixed(number))
    }

    /// Makes a transfer of bytes of a file at a drive, which waits there until the file server has given its order.
    pub(super) async fn commanded<T: Send>(
        &self,
        target: &Target,
        (fid, drive, order): (Fid, Fixed<16>, Order),
        transfer: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        let command = fs::Command { fid, drive, order };
        self.common.counters.call(fs::Command::NAME);
        let mut transfer = Box::pin(transfer);
        let commanded = Box::pin(target.connection.call(&command));
        match select(&mut transfer, commanded).await {
            // A drive that has waited for the command has not failed.
            Either::Left(Err(Error::Stalled | Error::Failed(Failure::Stalled))) => Err(not_commanded(None)),
            Either::Left(done) => done,
            Either::Right(Ok(_)) => transfer.await,
            Either::Right(Err(why)) => Err(not_commanded(Some(why))),
        }
    }
}

/// Whatever the reason, the file server moves the bytes itself, and a layout is asked for anew.
fn not_commanded(why: Option<CallError>) -> Error {
    tracing::debug!(?why, "a transfer was not commanded");
    Failure::Unavailable.into()
}
