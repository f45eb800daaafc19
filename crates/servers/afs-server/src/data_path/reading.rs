//! Reads by the data path: the bytes of exactly the version that the client names.

use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::Access;
use afs_datapath::session::{Failure, Opened, Pieces, ReadRequest};
use afs_rpc::{BoxFuture, EnvExt};
use bytes::Bytes;

use super::looking::{Looked, failure_of};
use crate::file::FileServer;
use crate::flow::{Content, FileContent};

/// How long a client waits for bytes that a drive does not give: shorter than it takes the data path itself for broken. A call may wait
/// longer.
const READ_MAX: Duration = Duration::from_secs(8);

/// Opens what a capability permits to read.
pub(super) async fn open(server: Arc<FileServer>, request: ReadRequest) -> Result<Opened, Failure> {
    let ReadRequest { peer, capability, fid, version, range } = request;
    let (looked, ..) = Looked::first(&server, capability, Access::READ, peer.ip(), fid).await?;
    let (position, length) = (range.start(), range.len());
    let opened = server.read(&looked.served.volume, move |volume| volume.data(fid, position, length)).await;
    let data = opened.map_err(|error| failure_of(&server, fid, &error))?;
    // This record, and not the one that was looked at first, is of the bytes that are sent.
    looked.permits(data.record())?;
    if data.record().data_version != version {
        return Err(Failure::OtherVersion);
    }
    server.statistics.count_path_read();
    server.audit_read(&request);
    let (file_length, length) = (data.record().length, data.remaining());
    let content = FileContent::new(server.env.clone(), data);
    let pieces = Box::new(FilePieces { server, looked, content, read: Bytes::new() });
    Ok(Opened { file_length, length, pieces })
}

/// The bytes of one version of a file.
struct FilePieces {
    server: Arc<FileServer>,
    looked: Looked,
    content: FileContent,
    /// Bytes that were read and not handed out.
    read: Bytes,
}

impl FilePieces {
    async fn next(&mut self, most: usize) -> Result<Bytes, Failure> {
        if self.read.is_empty() {
            let next = self.server.env.clone().timeout(READ_MAX, self.content.next()).await;
            let next = next.map_err(|_| Failure::Unavailable)?;
            let next = next.map_err(|error| failure_of(&self.server, self.looked.fid, &error))?;
            // The record promised more.
            self.read = next.ok_or(Failure::Io)?;
        }
        // After the disk, so that nothing is sent that was forbidden while it was read.
        self.looked.again(&self.server).await?;
        let piece = self.read.split_to(most.min(self.read.len()));
        self.server.statistics.count_path_sent(piece.len() as u64);
        Ok(piece)
    }
}

impl Pieces for FilePieces {
    fn next(&mut self, most: usize) -> BoxFuture<'_, Result<Bytes, Failure>> {
        Box::pin(FilePieces::next(self, most))
    }
}
