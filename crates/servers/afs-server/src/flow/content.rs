//! Data of a volume on the way to a client: the bytes of a file, or a dump.

use std::future::Future;

use afs_rpc::{EnvExt, EnvRef};
use afs_volume::dump::VolumeDump;
use afs_volume::{DataReader, VolumeError};
use bytes::Bytes;

use super::Sink;

/// A sequence of pieces read from a volume.
pub(crate) trait Content: Send {
    /// The next piece, at most a mebibyte; `None` after the last.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, VolumeError>> + Send;
}

impl Content for VolumeDump {
    async fn next(&mut self) -> Result<Option<Bytes>, VolumeError> {
        self.next().await
    }
}

/// Bytes of a file. Its extent index is read on a thread that may wait for a disk.
pub(crate) struct FileContent {
    env: EnvRef,
    /// `None` while the index is read, and for good if that fails.
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
            // No result means that the server is stopping, and the call with it.
            self.reader = Some(planned.await.unwrap_or(Err(VolumeError::Busy))?);
        }
        self.reader.as_mut().ok_or(VolumeError::Busy)?.next().await
    }
}

/// Why a transfer stopped before the end.
pub(crate) enum Stopped<E> {
    /// Reading the volume failed.
    Volume(VolumeError),
    /// The receiver takes no more.
    Sink(E),
}

/// Sends a content to a sink, piece by piece.
pub(crate) async fn pour<S: Sink>(content: &mut impl Content, sink: &mut S) -> Result<(), Stopped<S::Error>> {
    while let Some(piece) = content.next().await.map_err(Stopped::Volume)? {
        sink.put(piece).await.map_err(Stopped::Sink)?;
    }
    Ok(())
}
