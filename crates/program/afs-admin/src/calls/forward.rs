//! Calls that send a volume from server to server.

use afs_wire::ids::{UnixSeconds, VolumeId};
use afs_wire::vol::{Destination, Forward, ForwardDifference, RestoreCookie};

use super::transaction::Transaction;
use crate::error::{AdminError, AdminResult};

impl Transaction {
    /// Makes the server send what changed since a time to another transaction.
    pub(crate) async fn forward(
        &self,
        since: UnixSeconds,
        to: &Transaction,
        cookie: RestoreCookie,
    ) -> AdminResult {
        let request = Forward {
            transaction: self.id,
            from_date: since,
            destination: to.destination(),
            destination_transaction: to.id,
            cookie,
        };
        to.prove("write to").await?;
        self.call("send", &request).await.map_err(|error| sent_to(to, error))
    }

    /// Makes the server send the difference from an older state of the volume beside it. Servers of ours
    /// only.
    pub(crate) async fn forward_difference(
        &self,
        base: VolumeId,
        to: &Transaction,
        cookie: RestoreCookie,
    ) -> AdminResult {
        let request = ForwardDifference {
            transaction: self.id,
            base,
            destination: to.destination(),
            destination_transaction: to.id,
            cookie,
        };
        to.prove("write to").await?;
        self.call("send", &request).await.map_err(|error| sent_to(to, error))
    }

    pub(crate) fn destination(&self) -> Destination {
        Destination { host: self.place.server, port: u32::from(self.admin.cell().volume_port), security: 1 }
    }
}

/// The error of a stream, with its destination.
fn sent_to(to: &Transaction, mut error: AdminError) -> AdminError {
    error.doing = format!("{} to {}", error.doing, to.place);
    error
}
