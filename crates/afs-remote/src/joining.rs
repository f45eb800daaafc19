//! Joining of a drive by a file server: with the one-time secret of the drive's join key it gives the drive a key of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::{
    Access, ByteRange, Capability, DriveId, DriveKey, Generation, Group, KeyEpoch, Secret, StoreNumber,
};
use afs_datapath::frame::{ChunkReply, ChunkRequest, KeyBytes};
use afs_datapath::session::{Client, Error, Lost, Patience, Security};
use afs_drive::DriveError;
use afs_env::{EnvExt, EnvRef};
use bytes::Bytes;

use crate::drive::RemoteDrive;
use crate::options::RemoteOptions;

/// The epoch of a join key; the key that a file server gives has the next one.
const JOIN: KeyEpoch = KeyEpoch(0);
const JOINED: KeyEpoch = KeyEpoch(1);
/// For the exchange, TLS included.
const EXCHANGE: Duration = Duration::from_secs(20);

/// Why a drive could not be joined.
#[derive(Debug)]
pub enum JoinError {
    /// It could not be reached, has another TLS key than the join key says, or refused.
    Exchange(Error),
    /// It did not answer in time.
    Silent,
    /// It does not accept the new key.
    NotKept(DriveError),
}

impl std::fmt::Display for JoinError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exchange(error) => write!(f, "the drive did not take the key: {error}"),
            Self::Silent => write!(f, "the drive did not answer within {} s", EXCHANGE.as_secs()),
            Self::NotKept(error) => write!(f, "the drive does not accept its new key: {error}"),
        }
    }
}

impl std::error::Error for JoinError {}

/// Gives a new drive at `address` the key `new`, and looks whether it has it. Returns the drive's id.
///
/// Both ends are authenticated: the drive by its TLS key in `security`, the file server by `secret`, which is part of no
/// message. A drive that has the key already, because an earlier attempt was interrupted, is joined too.
///
/// # Errors
/// [`JoinError`]; the drive may have the key nevertheless, and another attempt with the same key may succeed.
pub async fn join(
    env: &EnvRef,
    address: SocketAddr,
    security: Security,
    secret: &Secret,
    new: &Secret,
) -> Result<DriveId, JoinError> {
    let exchange = env.timeout(EXCHANGE, exchange(env, address, security, secret, new)).await;
    let (drive, outcome) = match exchange {
        Ok(Ok(done)) => done,
        Ok(Err(lost)) => return Err(JoinError::Exchange(lost.into())),
        Err(_) => return Err(JoinError::Silent),
    };
    // The reply may be lost, or be that of a drive which took the key at an earlier attempt: its acceptance tells.
    match (look(env, address, security, drive, new).await, outcome) {
        (Ok(()), _) => Ok(drive),
        (Err(_), Err(refused)) => Err(JoinError::Exchange(refused)),
        (Err(error), Ok(_)) => Err(JoinError::NotKept(error)),
    }
}

async fn exchange(
    env: &EnvRef,
    address: SocketAddr,
    security: Security,
    secret: &Secret,
    new: &Secret,
) -> Result<(DriveId, Result<ChunkReply, Error>), Lost> {
    let stream = env.connect(address).await?;
    let client = Client::open_chunks(env.clone(), stream, security, Patience::default()).await?;
    let key = DriveKey::new(client.drive(), JOIN, *secret.expose());
    let capability = Capability {
        drive: key.drive(),
        epoch: JOIN,
        group: Group::Chunks(StoreNumber(0)),
        access: Access::MANAGE,
        range: ByteRange::ALL,
        expires: u64::MAX,
        generation: Generation(0),
        holder: key.holder(b"", b"file server"),
    };
    let what = ChunkRequest::Adopt { epoch: JOINED, key: KeyBytes(new.clone()) };
    let outcome = match client.present(&capability, &key.seal(&capability)) {
        Ok(handle) => client.perform(&handle, what, Bytes::new()).await,
        Err(error) => Err(error),
    };
    Ok((client.drive(), outcome))
}

/// Whether a drive accepts the key.
async fn look(
    env: &EnvRef,
    address: SocketAddr,
    security: Security,
    drive: DriveId,
    new: &Secret,
) -> Result<(), DriveError> {
    let key = Arc::new(DriveKey::new(drive, JOINED, *new.expose()));
    let options = RemoteOptions::new("new", address, security, key, StoreNumber(0));
    let until = env.now() + options.wait;
    let remote = RemoteDrive::new(env.clone(), options);
    loop {
        match remote.status().await {
            Ok(_) => return Ok(()),
            Err(error) if env.now() >= until => return Err(error),
            // It exchanges the keys just now.
            Err(_) => env.sleep(Duration::from_millis(500)).await,
        }
    }
}
