//! Requests to the store with their time-outs and retries, their errors with the keys in them, and whether the store is away.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afs_drive::DriveError;
use afs_env::{EnvExt, EnvRef};
use bytes::Bytes;

use crate::bucket::{Bucket, Failure, Page, Reply};
use crate::retry::{ATTEMPT_MAX, Retry};

/// The store, as the parts of a drive use it.
pub(crate) struct Requests {
    bucket: Arc<dyn Bucket>,
    env: EnvRef,
    /// The drive's name at this host.
    name: Arc<str>,
    /// The last request failed, after all its attempts. Until one succeeds each has one attempt, so that what waits for the
    /// store is told soon.
    away: AtomicBool,
}

/// A request that failed, after all attempts.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot {verb} object {key}: {failure}")]
pub(crate) struct Failed {
    drive: Arc<str>,
    verb: &'static str,
    key: String,
    pub(crate) failure: Failure,
}

impl Failed {
    pub(crate) fn new(drive: &Arc<str>, verb: &'static str, key: &str, failure: Failure) -> Self {
        Self { drive: drive.clone(), verb, key: key.to_owned(), failure }
    }

    /// The error of a drive whose store does not serve now, or not these credentials: nothing is known of what it has.
    pub(crate) fn away(&self) -> Option<DriveError> {
        let why = || self.to_string().into();
        is_away(&self.failure).then(|| DriveError::Away { drive: self.drive.clone(), why: why() })
    }
}

/// Whether a failure says something of the store, and nothing of the object.
fn is_away(failure: &Failure) -> bool {
    match failure {
        Failure::Busy(_) | Failure::Broken(_) | Failure::Denied(_) => true,
        Failure::Exists | Failure::Missing | Failure::Refused(_) => false,
    }
}

impl From<Failed> for io::Error {
    fn from(failed: Failed) -> Self {
        let kind = match failed.failure {
            Failure::Exists => io::ErrorKind::AlreadyExists,
            Failure::Missing => io::ErrorKind::NotFound,
            Failure::Busy(_) => io::ErrorKind::ResourceBusy,
            Failure::Broken(_) => io::ErrorKind::TimedOut,
            Failure::Denied(_) => io::ErrorKind::PermissionDenied,
            Failure::Refused(_) => io::ErrorKind::Other,
        };
        Self::new(kind, failed)
    }
}

impl From<Failed> for DriveError {
    fn from(failed: Failed) -> Self {
        // Not by `From<io::Error>`: no failure here means a full drive.
        failed.away().unwrap_or_else(|| Self::Io(Arc::new(failed.into())))
    }
}

impl Requests {
    pub(crate) fn new(bucket: Arc<dyn Bucket>, env: EnvRef, name: Arc<str>) -> Self {
        Self { bucket, env, name, away: AtomicBool::new(false) }
    }

    /// The store, for what needs no request.
    pub(crate) fn bucket(&self) -> &dyn Bucket {
        &*self.bucket
    }

    /// Puts an object, `proof` being the bytes by which it is recognised.
    ///
    /// An attempt without a reply may have put it, so that the next finds the key taken: then the object in the store is
    /// compared with `proof`.
    ///
    /// # Errors
    /// [`Failure::Exists`] if another object has the key.
    pub(crate) async fn put_new(
        &self,
        key: &str,
        body: &[Bytes],
        (at, proof): (Range<u64>, Bytes),
    ) -> Result<(), Failed> {
        let put = self.tried("put", key, || self.bucket.put_new(key, body.to_vec())).await;
        if !matches!(&put, Err(Failed { failure: Failure::Exists, .. })) {
            return put;
        }
        for _ in 0..COMPARISONS {
            if self.get_least(key, at.clone(), proof.len() as u64).await? == proof {
                return Ok(());
            }
        }
        put
    }

    /// The bytes of a range that the object has.
    pub(crate) async fn get(&self, key: &str, range: Range<u64>) -> Result<Bytes, Failed> {
        self.tried("get", key, || self.bucket.get(key, range.clone())).await
    }

    /// As [`Requests::get`], and tried again if fewer than `least` bytes came.
    pub(crate) async fn get_least(&self, key: &str, range: Range<u64>, least: u64) -> Result<Bytes, Failed> {
        let whole = || -> Reply<Bytes> {
            let get = self.bucket.get(key, range.clone());
            Box::pin(async move {
                let bytes = get.await?;
                let cut = || Failure::Broken(format!("{} of {least} bytes", bytes.len()));
                if bytes.len() as u64 >= least { Ok(bytes) } else { Err(cut()) }
            })
        };
        self.tried("get", key, whole).await
    }

    pub(crate) async fn list(&self, prefix: &str, after: Option<&str>) -> Result<Page, Failed> {
        self.tried("list", prefix, || self.bucket.list(prefix, after)).await
    }

    pub(crate) async fn delete(&self, key: &str) -> Result<(), Failed> {
        match self.tried("delete", key, || self.bucket.delete(key)).await {
            Err(Failed { failure: Failure::Missing, .. }) => Ok(()),
            other => other,
        }
    }

    /// One attempt to put an object that exists, with other bytes: whether the store keeps the old one.
    pub(crate) async fn keeps_what_exists(&self, key: &str) -> Result<bool, Failed> {
        match self.tried("put", key, || self.bucket.put_new(key, vec![Bytes::from_static(b"x")])).await {
            Ok(()) => Ok(false),
            Err(Failed { failure: Failure::Exists, .. }) => Ok(true),
            Err(other) => Err(other),
        }
    }

    /// One attempt to get the first bytes of an object.
    pub(crate) async fn look(&self, key: &str, len: u64) -> Result<Bytes, Failed> {
        let reply = self.attempt(self.bucket.get(key, 0..len)).await;
        self.ended("get", key, reply)
    }

    async fn tried<T: Send>(
        &self,
        verb: &'static str,
        key: &str,
        attempt: impl Fn() -> Reply<T>,
    ) -> Result<T, Failed> {
        let (began, mut retry) = (self.env.now(), Retry::default());
        let was_away = self.away.load(Ordering::Relaxed);
        loop {
            let reply = self.attempt(attempt()).await;
            let Err(failure) = &reply else { return self.ended(verb, key, reply) };
            let elapsed = self.env.now().saturating_since(began);
            match retry.pause(failure, elapsed, self.env.random_u64()).filter(|_| !was_away) {
                Some(pause) => {
                    tracing::debug!(verb, key, %failure, ?pause, "a request to an object store is made again");
                    self.env.sleep(pause).await;
                }
                None => return self.ended(verb, key, reply),
            }
        }
    }

    async fn attempt<T: Send>(&self, reply: Reply<T>) -> Result<T, Failure> {
        let reply = self.env.timeout(ATTEMPT_MAX, reply).await;
        reply.unwrap_or_else(|_| Err(Failure::Broken("no reply in time".into())))
    }

    /// Notes how the last attempt at a request ended. The log says once that the store is away, and once that it is back.
    fn ended<T>(&self, verb: &'static str, key: &str, reply: Result<T, Failure>) -> Result<T, Failed> {
        let is_away = reply.as_ref().is_err_and(is_away);
        let was_away = self.away.swap(is_away, Ordering::Relaxed);
        let reply = reply.map_err(|failure| Failed::new(&self.name, verb, key, failure));
        match &reply {
            Err(why) if is_away && !was_away => {
                tracing::warn!(drive = %self.name, %why, "a bucket is away: its files cannot be read, and nothing stored there");
            }
            _ if was_away && !is_away => tracing::info!(drive = %self.name, "the bucket is back"),
            _ => {}
        }
        reply
    }
}

/// An object that is not what was put is read once more: its bytes may have been damaged on their way.
const COMPARISONS: usize = 2;
