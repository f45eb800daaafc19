//! A dump's way to one other server: the data path where there is one, a call otherwise, and the call again where the
//! data path broke.

use std::collections::VecDeque;
use std::sync::Arc;

use afs_volume::VolumeError;
use afs_volume::dump::VolumeDump;
use afs_wire::error::AbortCode;
use afs_wire::vol::{DUMP_BY_PATH, Destination};
use bytes::Bytes;

use super::VolumeServer;
use super::delivery::{Delivery, PathUse, To, Undelivered};
use super::work::Work;
use crate::flow::{Content, Stopped, pour};

/// Most bytes that are read before a dump's way is chosen.
const HEAD_MAX: u64 = 4 << 20;

/// A dump whose first bytes were read, to see how long it is.
pub(super) struct Headed {
    head: VecDeque<Bytes>,
    rest: VolumeDump,
    /// Its length if it was read to its end, and else no bound.
    pub(super) bytes: u64,
}

impl Headed {
    /// Reads so many bytes of a dump, if there are so many.
    async fn read(mut rest: VolumeDump, bytes: u64) -> Result<Self, VolumeError> {
        let (mut head, mut read) = (VecDeque::new(), 0);
        while read < bytes
            && let Some(piece) = rest.next().await?
        {
            read += piece.len() as u64;
            head.push_back(piece);
        }
        let bytes = if read < bytes { read } else { u64::MAX };
        Ok(Headed { head, rest, bytes })
    }
}

impl Content for Headed {
    async fn next(&mut self) -> Result<Option<Bytes>, VolumeError> {
        match self.head.pop_front() {
            Some(piece) => Ok(Some(piece)),
            None => self.rest.next().await,
        }
    }
}

impl VolumeServer {
    /// Sends a dump, and again by a call if the data path breaks. The result is the other server's.
    pub(super) async fn send_dump_to(
        self: &Arc<Self>,
        work: &Work,
        dump: impl Fn() -> VolumeDump + Send + Sync,
        to: To<'_>,
    ) -> Result<(), AbortCode> {
        let formats = self.formats(to.server).await?;
        let content = self.head(work, dump(), formats).await?;
        let path = self.path_use(work, to.server, formats, content.bytes);
        match self.deliver(work, content, Delivery::begin(self, to, path).await).await {
            Err(Undelivered::Broken) => self.send_by_call(work, dump(), formats, to).await,
            Err(Undelivered::Code(code)) => Err(code),
            Ok(()) => Ok(()),
        }
    }

    /// Sends a dump by a call, because the data path broke.
    pub(super) async fn send_by_call(
        self: &Arc<Self>,
        work: &Work,
        dump: VolumeDump,
        formats: u32,
        to: To<'_>,
    ) -> Result<(), AbortCode> {
        tracing::info!(volume = %work.id(), to = %to.server.host, "the data path broke; the dump is sent again by a call");
        self.path_failed(to.server);
        let content = self.prepare(work, dump, formats).await?;
        let sent = self.deliver(work, content, Delivery::by_call(self, to).await).await;
        sent.map_err(|undelivered| match undelivered {
            Undelivered::Code(code) => code,
            Undelivered::Broken => AbortCode::VOLSERDUMPERROR,
        })
    }

    /// Reads as much of a dump as decides whether it is worth the data path.
    pub(super) async fn head(
        &self,
        work: &Work,
        dump: VolumeDump,
        formats: u32,
    ) -> Result<Headed, AbortCode> {
        let dump = self.prepare(work, dump, formats).await?;
        let path = self.path().filter(|_| formats & DUMP_BY_PATH != 0);
        let drive = path.and_then(|files| files.data_path.offered());
        let wanted = drive.map_or(0, |drive| drive.minimum_size);
        let read = Headed::read(dump, wanted.min(HEAD_MAX)).await;
        read.map_err(|error| self.code(work.id(), &error))
    }

    /// How a dump of so many bytes may take the data path to a peer; `None` if it is to go by a call.
    pub(super) fn path_use(
        &self,
        work: &Work,
        to: &Destination,
        formats: u32,
        bytes: u64,
    ) -> Option<PathUse> {
        let drive = self.path()?.data_path.offered()?;
        if formats & DUMP_BY_PATH == 0 || bytes < drive.minimum_size || self.is_pausing(to) {
            return None;
        }
        let name = work.volume().ok()?.header().name.clone();
        Some(PathUse { clear: drive.clear && self.may_be_clear(name.as_str()), bytes })
    }

    async fn deliver(
        &self,
        work: &Work,
        mut content: impl Content,
        delivery: Result<Delivery, Undelivered>,
    ) -> Result<(), Undelivered> {
        let mut delivery = delivery?;
        match pour(&mut content, &mut delivery).await {
            Ok(()) | Err(Stopped::Sink(Undelivered::Broken)) => delivery.finish().await,
            Err(Stopped::Sink(undelivered)) => Err(undelivered),
            Err(Stopped::Volume(error)) => {
                let code = self.code(work.id(), &error);
                delivery.give_up(code);
                Err(Undelivered::Code(code))
            }
        }
    }
}
