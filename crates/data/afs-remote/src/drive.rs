//! A drive on another host, as a file server uses it.

use std::future::Future;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use afs_datapath::frame::{ChunkReply, ChunkRequest, DriveStatus};
use afs_datapath::session::{Error, Failure};
use afs_drive::{
    BoxFuture, ChunkId, ChunkRef, Drive, DriveError, LiveChunks, Returned, StagedChunks, SweepReport, Usage,
};
use afs_env::{EnvExt, EnvRef};
use bytes::Bytes;

use crate::connection::{Connection, Open};
use crate::managing::is_other_epoch;
use crate::options::RemoteOptions;
use crate::{claiming, reading, sweeping, writing};

/// Pause before another attempt.
const PAUSE: Duration = Duration::from_millis(500);
/// How long a flush is waited for, at a drive that can be reached.
const SYNC_WAIT: Duration = Duration::from_secs(300);

/// A store of chunks on another host. Clones are handles of the same drive.
///
/// It connects when it is first used. While the drive cannot be reached, each operation tries again for
/// [`RemoteOptions::wait`], and then fails with [`DriveError::Away`]; nothing has to be done when the drive comes back.
/// Chunks that were written and not flushed when the drive was started again are named by no reference of the store:
/// their [`Drive::sync`] fails with [`DriveError::Forgotten`].
#[derive(Clone)]
pub struct RemoteDrive(Arc<Connection>);

impl RemoteDrive {
    /// A drive that is not connected yet.
    #[must_use]
    pub fn new(env: EnvRef, options: RemoteOptions) -> Self {
        Self(Arc::new(Connection::new(env, options)))
    }

    /// How the drive is.
    pub fn status(&self) -> BoxFuture<Result<DriveStatus, DriveError>> {
        let drive = self.clone();
        Box::pin(async move {
            match drive.perform(ChunkRequest::Status, Bytes::new(), Duration::ZERO).await? {
                ChunkReply::Status(status) => {
                    drive.0.set_usage(status.usage);
                    Ok(status)
                }
                _ => Err(drive.wrong("another reply than its status")),
            }
        })
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.0
    }

    /// Has something done, on as many connections as it takes within `wait`.
    pub(crate) async fn perform(
        &self,
        what: ChunkRequest,
        bytes: Bytes,
        wait: Duration,
    ) -> Result<ChunkReply, DriveError> {
        self.attempts(wait, |open| {
            let (what, bytes) = (what.clone(), bytes.clone());
            async move { open.client.perform(&open.handle, what, bytes).await }
        })
        .await
    }

    /// Makes attempts until one succeeds, or one fails in a way that no other helps, or the time is over.
    pub(crate) async fn attempts<T, F: Future<Output = Result<T, Error>> + Send>(
        &self,
        wait: Duration,
        attempt: impl Fn(Open) -> F + Send,
    ) -> Result<T, DriveError> {
        let env = self.0.env();
        let (began, mut has_same_key) = (env.now(), true);
        loop {
            let why: Arc<str> = match self.0.open().await {
                Err(why) => {
                    self.0.note_away(began);
                    why
                }
                Ok(open) => match attempt(open.clone()).await.inspect_err(|error| self.note_unclear(error)) {
                    Err(error) if is_other_epoch(&error) => {
                        self.0.forget(&open);
                        if std::mem::take(&mut has_same_key) {
                            continue;
                        }
                        error.to_string().into()
                    }
                    Err(error) if is_passing(&error) => {
                        if matches!(error, Error::Lost(_)) {
                            self.0.note_away(began);
                        }
                        error.to_string().into()
                    }
                    other => return other.map_err(|error| self.failure(&error)),
                },
            };
            if env.now() >= self.0.patience(began, wait) {
                return Err(DriveError::Away { drive: self.0.options().name.clone(), why });
            }
            env.sleep(PAUSE).await;
        }
    }

    fn note_unclear(&self, error: &Error) {
        if is_passing(error) || matches!(error, Error::Failed(Failure::Io)) {
            self.0.note_unclear();
        }
    }

    /// A reply that the drive cannot give.
    pub(crate) fn wrong(&self, what: &str) -> DriveError {
        let drive = self.0.options().name.clone();
        tracing::error!(%drive, "a drive gave {what}");
        DriveError::Refused { drive, why: format!("it gave {what}").into() }
    }

    fn failure(&self, error: &Error) -> DriveError {
        match error {
            Error::Failed(Failure::NoSpace) => DriveError::NoSpace,
            Error::Failed(Failure::Forgotten) => DriveError::Forgotten,
            Error::Failed(Failure::NotStaged) => DriveError::NotStaged,
            Error::Failed(Failure::Io) => {
                let what = format!("drive {}: {error}", self.0.options().name);
                DriveError::Io(Arc::new(io::Error::other(what)))
            }
            other => {
                DriveError::Refused { drive: self.0.options().name.clone(), why: other.to_string().into() }
            }
        }
    }

    /// Runs work as a task: it begins now, and is completed even if the caller drops the future.
    pub(crate) fn start<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, DriveError>> + Send + 'static,
    ) -> BoxFuture<Result<T, DriveError>> {
        let env = self.0.env();
        let told = env.start_with_result(env.stall(), work);
        Box::pin(async move { told.await.unwrap_or(Err(DriveError::Closed)) })
    }
}

/// Whether another attempt may succeed.
fn is_passing(error: &Error) -> bool {
    match error {
        Error::Lost(_) | Error::Stalled => true,
        Error::Failed(failure) => matches!(failure, Failure::Busy | Failure::Stalled | Failure::Unavailable),
        Error::Handles | Error::Length => false,
    }
}

impl Drive for RemoteDrive {
    fn write(&self, data: Bytes) -> BoxFuture<Result<ChunkRef, DriveError>> {
        writing::write(self, data)
    }

    fn read(&self, chunk: ChunkRef, range: Range<u32>) -> BoxFuture<Result<Bytes, DriveError>> {
        let drive = self.clone();
        self.start(async move { reading::read(&drive, chunk, range).await })
    }

    fn sync(&self, written: &[ChunkRef]) -> BoxFuture<Result<(), DriveError>> {
        let Some(oldest) = written.iter().map(|chunk| chunk.id).min() else {
            return Box::pin(async { Ok(()) });
        };
        let drive = self.clone();
        self.start(async move {
            match drive.perform(ChunkRequest::Sync { oldest }, Bytes::new(), SYNC_WAIT).await? {
                ChunkReply::Done => Ok(()),
                _ => Err(drive.wrong("another reply to a flush")),
            }
        })
    }

    /// Does not wait for a drive that is away: what is not discarded stays known to the store.
    fn discard(&self, chunks: Vec<ChunkRef>) -> BoxFuture<Result<(), DriveError>> {
        let drive = self.clone();
        self.start(async move { writing::discard(&drive, &chunks).await })
    }

    fn takes_staged(&self) -> BoxFuture<bool> {
        let drive = self.clone();
        Box::pin(async move { claiming::takes_staged(&drive).await })
    }

    fn claim(&self, staged: StagedChunks) -> BoxFuture<Result<(), DriveError>> {
        let drive = self.clone();
        self.start(async move { claiming::claim(&drive, staged).await })
    }

    fn continue_after(&self, last: ChunkId) {
        self.0.continue_after(last);
    }

    /// A drive that is away is watched: within seconds of its return it is known here.
    fn on_return(&self, told: Returned) {
        self.0.on_return(told);
    }

    /// The latest that the drive told with another reply.
    fn usage(&self) -> Result<Usage, DriveError> {
        let away = || DriveError::Away { drive: self.0.options().name.clone(), why: self.0.why_away() };
        self.0.usage().ok_or_else(away)
    }

    fn sweep(&self, live: Arc<dyn LiveChunks>) -> BoxFuture<Result<SweepReport, DriveError>> {
        let drive = self.clone();
        self.start(async move { sweeping::sweep(&drive, live).await })
    }

    fn sweep_left(
        &self,
        live: Arc<dyn LiveChunks>,
        settled: BoxFuture<Result<(), DriveError>>,
    ) -> BoxFuture<Result<SweepReport, DriveError>> {
        let drive = self.clone();
        self.start(async move { sweeping::sweep_left(&drive, live, settled).await })
    }
}
