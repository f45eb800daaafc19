//! The capability of a file server for all chunks of a store, under the key that the drive has.

use std::sync::Arc;

use afs_datapath::capability::{
    Access, ByteRange, Capability, DriveKey, Generation, Group, Refusal, StoreNumber,
};
use afs_datapath::session::{Client, Error, Failure, Handle};

use crate::options::RemoteOptions;

/// Presents it on a connection that was just opened; returns the key that the drive has, too.
///
/// # Errors
/// [`Refusal::OtherEpoch`] for a drive that has another key than the two that it may have; errors of the connection.
pub(crate) fn manage(client: &Client, options: &RemoteOptions) -> Result<(Arc<DriveKey>, Handle), Error> {
    let key = options.keys.of_epoch(client.epoch()).map_err(|here| {
        let (drive, there) = (&options.name, client.epoch());
        tracing::warn!(%drive, %here, %there, "a drive has a key of another epoch than this file server");
        Failure::Refused(Refusal::OtherEpoch)
    })?;
    let handle = present(client, &key, options.store)?;
    Ok((key, handle))
}

/// Presents the capability under a key. It does not expire: who has the key can seal another one, so that a time limit would only
/// bind the clocks of both hosts together.
pub(crate) fn present(client: &Client, key: &DriveKey, store: StoreNumber) -> Result<Handle, Error> {
    let capability = Capability {
        drive: key.drive(),
        epoch: key.epoch(),
        group: Group::Chunks(store),
        access: Access::MANAGE,
        range: ByteRange::ALL,
        expires: u64::MAX,
        generation: Generation(0),
        holder: key.holder(b"", b"file server"),
    };
    client.present(&capability, &key.seal(&capability))
}

/// Whether a capability was refused because the drive has another key than when the connection was opened.
pub(crate) fn is_other_epoch(error: &Error) -> bool {
    matches!(error, Error::Failed(Failure::Refused(Refusal::OtherEpoch)))
}
