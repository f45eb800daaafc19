//! Fetch of a range of one version over a connection.

use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::ByteRange;
use afs_datapath::session::{Arriving, Error};
use afs_rpc::EnvExt;
use afs_wire::ids::DataVersion;
use bytes::Bytes;

use super::capabilities::{Need, Use};
use super::connect::STALL;
use super::fallback::Ended;
use super::server::ServerPath;
use super::steps::{Ready, Stop};
use crate::calls::Target;
use crate::transfer::{PIECE, Sink, Wanted};

impl ServerPath {
    /// Gives a sink all bytes of a range of a version. Does not wait for a connection.
    pub(super) async fn fetch(
        self: &Arc<Self>,
        target: &Target,
        wanted: &Wanted,
        version: DataVersion,
        sink: &mut dyn Sink,
    ) -> Result<(), Ended> {
        let Wanted { fid, directory, .. } = *wanted;
        let range = ByteRange::new(wanted.range.start, wanted.range.end).ok_or(Ended::NoPath)?;
        let need = Need { token: target.token, fid, directory, used: Use::Read };
        let ready = self.prepare(target, &need, range.len(), Duration::ZERO).await?;
        let work = self.arrive(&ready, wanted, range, version, sink);
        self.run(&ready, &need, range.len(), work).await
    }

    async fn arrive(
        &self,
        ready: &Ready,
        wanted: &Wanted,
        range: ByteRange,
        version: DataVersion,
        sink: &mut dyn Sink,
    ) -> Result<(), Stop> {
        let opening = ready.link.session.read(&ready.handle, wanted.fid, range, version);
        let mut arriving = self.step(opening).await?;
        // Whoever holds a version knows its length, and asks for no bytes beyond it.
        if arriving.length() != range.len() {
            return Err(Stop::Wrong);
        }
        sink.begin(range.len());
        let mut left = range.len();
        while left > 0 {
            let parts = self.piece(&mut arriving, &mut left).await?;
            sink.put(parts).await.map_err(|_| Stop::Here)?;
        }
        sink.end().await.map_err(|_| Stop::Here)
    }

    /// The next [`PIECE`], or what is left, in the parts in which it arrives.
    async fn piece(&self, arriving: &mut Arriving, left: &mut u64) -> Result<Vec<Bytes>, Stop> {
        let (mut parts, mut bytes) = (Vec::new(), 0);
        while bytes < PIECE && *left > 0 {
            let part = self.step(arriving.next()).await?.ok_or(Stop::Wrong)?;
            *left = left.checked_sub(part.len() as u64).ok_or(Stop::Wrong)?;
            bytes += part.len() as u64;
            parts.push(part);
        }
        Ok(parts)
    }

    /// One step of the drive, which may take [`STALL`].
    async fn step<T: Send>(&self, work: impl Future<Output = Result<T, Error>> + Send) -> Result<T, Stop> {
        let done = self.common.env.timeout(STALL, work).await;
        done.unwrap_or(Err(Error::Stalled)).map_err(Stop::Drive)
    }
}
