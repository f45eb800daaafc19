//! Staging: the bytes of a store as chunks in a room, with the drive's receipts for them.

use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::Receipt;
use afs_datapath::session::Error;
use afs_drive::ChunkRef;
use afs_rpc::EnvExt;
use afs_rpc::future::join;
use afs_wire::fs::{COMMIT_SLOT_LEN, CommitPart};
use afs_wire::xdr::{Encode, Fixed};
use bytes::{Bytes, BytesMut};

use super::super::super::connect::STALL;
use super::super::super::fallback::Fallback;
use super::super::super::steps::{Ended, RATE_MIN};
use super::super::read::here;
use super::super::server_drives::ServerDrives;
use super::asking::Room;
use super::parts::{Part, parts};
use crate::transfer::{Source, StoreRequest};

/// Chunks for which receipts are taken at a time: so many mebibytes the drive makes durable at once.
const BATCH: usize = 64;
/// How long a drive may take for receipts: it makes the chunks of a batch durable first.
const RECEIPTS_MAX: Duration = Duration::from_secs(60);

/// What was staged.
#[derive(Default)]
pub(super) struct Staged {
    /// With receipts, as the commit sends them.
    pub table: Vec<u8>,
    pub count: u32,
    pub run: Option<u64>,
    /// Without a receipt yet, with their positions.
    waiting: Vec<(u64, ChunkRef)>,
}

impl ServerDrives {
    /// Stages all bytes of a store. The next part is read while the drive takes the one before: two of them are in memory.
    pub(super) async fn stage_all(
        self: &Arc<Self>,
        room: &Room,
        change: &StoreRequest<'_>,
        source: &mut dyn Source,
    ) -> Result<Staged, Ended> {
        let (mut staged, mut ready) = (Staged::default(), None);
        for part in parts(change) {
            let position = part.range.start;
            let (done, bytes) = join(self.stage(room, ready.take(), &mut staged), gather(source, part)).await;
            done.map_err(Ended::Fallback)?;
            ready = Some((position, bytes?));
        }
        self.stage(room, ready, &mut staged).await.map_err(Ended::Fallback)?;
        self.take_receipts(room, &mut staged).await.map_err(Ended::Fallback)?;
        Ok(staged)
    }

    async fn stage(
        self: &Arc<Self>,
        room: &Room,
        ready: Option<(u64, Bytes)>,
        staged: &mut Staged,
    ) -> Result<(), Fallback> {
        let Some((position, bytes)) = ready else { return Ok(()) };
        let most = STALL + Duration::from_secs(bytes.len() as u64 / RATE_MIN);
        let chunk = self.at_room(room, most, room.link.session.stage(&room.handle, bytes)).await?;
        staged.waiting.push((position, chunk));
        match staged.waiting.len() {
            BATCH.. => self.take_receipts(room, staged).await,
            _ => Ok(()),
        }
    }

    async fn take_receipts(self: &Arc<Self>, room: &Room, staged: &mut Staged) -> Result<(), Fallback> {
        let chunks: Vec<_> = staged.waiting.iter().map(|(_, chunk)| *chunk).collect();
        if chunks.is_empty() {
            return Ok(());
        }
        let given = room.link.session.receipts(&room.handle, &chunks);
        let given = self.at_room(room, RECEIPTS_MAX, given).await?;
        // A drive that was started again has none of what came before.
        if *staged.run.get_or_insert(given.run) != given.run {
            return Err(Fallback::Declined);
        }
        staged.add(&given.receipts);
        Ok(())
    }

    /// A request to the drive of a room.
    async fn at_room<T: Send>(
        self: &Arc<Self>,
        room: &Room,
        most: Duration,
        work: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Fallback> {
        let done = self.common.env.timeout(most, work).await.unwrap_or(Err(Error::Stalled));
        done.map_err(|error| match Fallback::of(&error) {
            // What a drive says of a store says nothing of its reads.
            why if why.is_of_request() => why,
            why => self.failed(&room.link, &room.given, why),
        })
    }
}

impl Staged {
    fn add(&mut self, receipts: &[Receipt]) {
        for ((position, chunk), receipt) in self.waiting.drain(..).zip(receipts) {
            let (chunk, receipt) = (Fixed(chunk.to_bytes()), Fixed(receipt.0));
            CommitPart { position, chunk, receipt }.encode(&mut self.table);
            self.count += 1;
        }
    }
}

/// All bytes of a part.
async fn gather(source: &mut dyn Source, Part { piece, range }: Part<'_>) -> Result<Bytes, Ended> {
    let length = range.end - range.start;
    debug_assert!(length <= COMMIT_SLOT_LEN, "a part lies in a slot");
    let (mut all, mut at) = (BytesMut::with_capacity(length as usize), range.start);
    while at < range.end {
        let bytes = source.bytes(piece, at, range.end - at).await.map_err(|_| here())?;
        at += bytes.len() as u64;
        all.extend_from_slice(&bytes);
    }
    Ok(all.freeze())
}
