//! What a volume gives: bytes of a file, or a dump.

use std::future::Future;

use afs_rpc::{EnvExt, EnvRef};
use afs_volume::dump::VolumeDump;
use afs_volume::{DataReader, VolumeError};
use bytes::Bytes;

use super::Sink;

/// Bytes of a volume on their way out.
pub(crate) trait Content: Send {
    /// The next bytes, at most a mebibyte; `None` after the last.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, VolumeError>> + Send;
}

impl Content for VolumeDump {
    async fn next(&mut self) -> Result<Option<Bytes>, VolumeError> {
        self.next().await
    }
}

/// Bytes of a file. Its index is read where that may wait for a disk.
pub(crate) struct FileContent {
    env: EnvRef,
    /// `None` while its index is read, and for ever if that fails.
    reader: Option<DataReader>,
}

impl FileContent {
    pub(crate) fn new(env: EnvRef, reader: DataReader) -> Self {
        FileContent { env, reader: Some(reader) }
    }
}

impl Content for FileContent {
    async fn next(&mut self) -> Result<Option<Bytes>, VolumeError> {
        if let Some(mut reader) = self.reader.take_if(|reader| reader.must_plan()) {
            let planned = self.env.run_blocking(move || reader.plan().map(|()| reader));
            // Without an answer the server is at its end, and so is the call.
            self.reader = Some(planned.await.unwrap_or(Err(VolumeError::Busy))?);
        }
        self.reader.as_mut().ok_or(VolumeError::Busy)?.next().await
    }
}

/// Why not all bytes were given.
pub(crate) enum Stopped<E> {
    /// The volume does not give them.
    Volume(VolumeError),
    /// The other side does not take them.
    Sink(E),
}

/// Gives a sink all that a content has.
pub(crate) async fn pour<S: Sink>(content: &mut impl Content, sink: &mut S) -> Result<(), Stopped<S::Error>> {
    while let Some(piece) = content.next().await.map_err(Stopped::Volume)? {
        sink.put(piece).await.map_err(Stopped::Sink)?;
    }
    Ok(())
}
