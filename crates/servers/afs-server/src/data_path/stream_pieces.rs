//! Dumps on the way out of a drive and into it, as the pieces of a session and as a source of bytes.

use afs_datapath::session::{Failure, Pieces, Taken};
use afs_rpc::BoxFuture;
use afs_rpc::sync::oneshot;
use afs_volume::VolumeError;
use afs_volume::dump::VolumeDump;
use bytes::Bytes;

use crate::flow::{Broken, Source};

/// The pieces of a dump that leaves.
pub(crate) struct DumpPieces {
    dump: VolumeDump,
    /// Bytes that were read and not handed out.
    read: Bytes,
    /// Tells the call of the stream how the dump ended. Dropped before if nobody wants the rest.
    ended: Option<oneshot::Sender<Result<(), VolumeError>>>,
}

impl DumpPieces {
    /// The pieces, and how the dump ends.
    pub(crate) fn new(dump: VolumeDump) -> (Self, oneshot::Receiver<Result<(), VolumeError>>) {
        let (ended, end) = oneshot::channel();
        (DumpPieces { dump, read: Bytes::new(), ended: Some(ended) }, end)
    }

    async fn next(&mut self, most: usize) -> Result<Bytes, Failure> {
        if self.read.is_empty() {
            match self.dump.next().await {
                Ok(Some(piece)) => self.read = piece,
                Ok(None) => self.end(Ok(())),
                Err(error) => {
                    self.end(Err(error));
                    return Err(Failure::Io);
                }
            }
        }
        Ok(self.read.split_to(most.min(self.read.len())))
    }

    fn end(&mut self, end: Result<(), VolumeError>) {
        if let Some(ended) = self.ended.take() {
            // The call may be over already.
            let _ = ended.send(end);
        }
    }
}

impl Pieces for DumpPieces {
    fn next(&mut self, most: usize) -> BoxFuture<'_, Result<Bytes, Failure>> {
        Box::pin(DumpPieces::next(self, most))
    }
}

/// A dump that arrives.
pub(crate) struct ComingDump {
    bytes: Taken,
    /// Bytes that have arrived and were not asked for yet.
    rest: Bytes,
    /// Why it broke.
    failure: Option<Failure>,
}

impl ComingDump {
    pub(crate) fn new(bytes: Taken) -> Self {
        ComingDump { bytes, rest: Bytes::new(), failure: None }
    }

    /// What the drive tells its client if the dump is not restored.
    pub(crate) fn failure(&self) -> Failure {
        self.failure.unwrap_or(Failure::Io)
    }
}

impl Source for ComingDump {
    async fn next(&mut self, most: usize) -> Result<Vec<Bytes>, Broken> {
        if self.rest.is_empty() {
            match self.bytes.next().await {
                Ok(Some(piece)) => self.rest = piece,
                Ok(None) => return Ok(Vec::new()),
                Err(failure) => {
                    self.failure = Some(failure);
                    return Err(Broken);
                }
            }
        }
        Ok(vec![self.rest.split_to(most.min(self.rest.len()))])
    }
}
