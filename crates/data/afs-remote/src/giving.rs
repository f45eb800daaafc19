//! Keys given to a drive: the first one by a file server that joins it with the secret of its join key, and each further one by the
//! key before.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::{DriveId, DriveKey, KeyEpoch, Secret, StoreNumber};
use afs_datapath::frame::{ChunkReply, ChunkRequest, KeyBytes};
use afs_datapath::session::{Client, Error, Failure, Lost, Patience, Security};
use afs_env::{EnvExt, EnvRef};
use bytes::Bytes;

use crate::drive::RemoteDrive;
use crate::keys::DriveKeys;
use crate::managing;
use crate::options::RemoteOptions;

/// Epoch of the first key, which follows that of the join key.
const JOINED: KeyEpoch = KeyEpoch(1);
/// For the exchange, TLS included.
const EXCHANGE: Duration = Duration::from_secs(20);

/// Why a drive did not get a key.
#[derive(Debug)]
pub enum GiveError {
    /// It could not be reached, has another TLS key than it is to have, or refused.
    Exchange(Error),
    /// Its program cannot change the key that it was joined with.
    Unable,
    /// It did not answer in time.
    Silent,
    /// It does not accept the new key.
    NotKept(String),
}

impl std::fmt::Display for GiveError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exchange(error) => write!(f, "the drive did not take the key: {error}"),
            Self::Unable => write!(f, "the drive did not take the key: its program may be too old for that"),
            Self::Silent => write!(f, "the drive did not answer within {} s", EXCHANGE.as_secs()),
            Self::NotKept(error) => write!(f, "the drive does not accept its new key: {error}"),
        }
    }
}

impl std::error::Error for GiveError {}

/// Gives a new drive at `address` the key `new`, and looks whether it has it. Returns the drive's id.
///
/// Both ends are authenticated: the drive by its TLS key in `security`, the file server by `secret`, which is part of no
/// message. A drive that has the key already, because an earlier attempt was interrupted, is joined too.
///
/// # Errors
/// [`GiveError`]; the drive may have the key nevertheless, and another attempt with the same key may succeed.
pub async fn join(
    env: &EnvRef,
    address: SocketAddr,
    security: Security,
    secret: &Secret,
    new: &Secret,
) -> Result<DriveId, GiveError> {
    let exchange = async {
        let stream = env.connect(address).await?;
        let client = Client::open(env.clone(), stream, security, Patience::default()).await?;
        let of = |epoch, secret: &Secret| DriveKey::new(client.drive(), epoch, *secret.expose());
        let (join, first) = (of(KeyEpoch::JOIN, secret), of(JOINED, new));
        Ok::<_, Lost>((give(&client, &join, &first).await, first))
    };
    let (outcome, first) = in_time(env, exchange).await?.map_err(|lost| GiveError::Exchange(lost.into()))?;
    let drive = first.drive();
    let keys = DriveKeys::from(Arc::new(first));
    let options = RemoteOptions::new("new", address, security, keys, StoreNumber(0));
    look(env, options, outcome).await.map(|()| drive)
}

/// Gives a drive the next one of its keys, by the present one, and looks whether it has it; it is the present one then. A drive that
/// has it already, because an earlier attempt was interrupted, is as good. Without a next one it looks whether the drive has the
/// present one.
///
/// # Errors
/// As [`join`].
pub async fn rekey(env: &EnvRef, options: &RemoteOptions) -> Result<(), GiveError> {
    let Some(next) = options.keys.next() else { return look(env, options.clone(), Ok(())).await };
    let exchange = async {
        let stream = env.connect(options.address).await.map_err(Lost::from)?;
        let client = Client::open(env.clone(), stream, options.security, options.patience).await?;
        let (key, _) = managing::manage(&client, options)?;
        Ok::<_, Error>(match key.epoch() == next.epoch() {
            true => Ok(()),
            false => give(&client, &key, &next).await,
        })
    };
    let outcome = in_time(env, exchange).await?.map_err(GiveError::Exchange)?;
    look(env, options.clone(), outcome).await
}

async fn in_time<T: Send>(env: &EnvRef, exchange: impl Future<Output = T> + Send) -> Result<T, GiveError> {
    env.timeout(EXCHANGE, exchange).await.map_err(|_| GiveError::Silent)
}

/// Has the drive exchange its key for another one.
async fn give(client: &Client, present: &DriveKey, next: &DriveKey) -> Result<(), Error> {
    let what = ChunkRequest::Adopt { epoch: next.epoch(), key: KeyBytes(next.secret()) };
    let handle = managing::present(client, present, StoreNumber(0))?;
    match client.perform(&handle, what, Bytes::new()).await? {
        ChunkReply::Done => Ok(()),
        _ => Err(Lost::Violation("another reply to a key").into()),
    }
}

/// Whether the drive accepts the key. The reply of an exchange may be lost, or be that of a drive which took the key at an earlier
/// attempt: the acceptance tells.
async fn look(env: &EnvRef, options: RemoteOptions, exchanged: Result<(), Error>) -> Result<(), GiveError> {
    let (until, keys) = (env.now() + options.wait, options.keys.clone());
    let remote = RemoteDrive::new(env.clone(), options);
    let error = loop {
        let why = match remote.status().await {
            Ok(_) if keys.next().is_none() => return Ok(()),
            Ok(_) => "it has the earlier one".to_owned(),
            Err(error) => error.to_string(),
        };
        if env.now() >= until || exchanged.is_err() {
            break why;
        }
        env.sleep(Duration::from_millis(500)).await;
    };
    match exchanged {
        Ok(()) => Err(GiveError::NotKept(error)),
        Err(Error::Failed(Failure::Invalid)) => Err(GiveError::Unable),
        Err(refused) => Err(GiveError::Exchange(refused)),
    }
}
