//! Staging: the bytes of a store as chunks in a room, with receipts of all drives that are to have them.

use std::sync::Arc;
use std::time::Duration;

use afs_datapath::session::{Error, Receipts};
use afs_drive::ChunkRef;
use afs_rpc::EnvExt;
use afs_rpc::future::{join, join_all};
use afs_wire::fs::{COMMIT_SLOT_LEN, CommitPlace};
use afs_wire::ids::Fid;
use afs_wire::xdr::Fixed;
use bytes::{Bytes, BytesMut};

use super::super::super::connect::STALL;
use super::super::super::fallback::{Ended, Fallback};
use super::super::super::steps::RATE_MIN;
use super::super::read::here;
use super::super::server_drives::ServerDrives;
use super::asking::{AtDrive, Room};
use super::parts::{Part, parts};
use crate::calls::Target;
use crate::transfer::{Source, StoreRequest};

/// Chunks for which receipts are taken of a drive at a time: so many mebibytes it makes durable at once.
const BATCH: usize = 64;
/// How long a drive may take for receipts: it makes the chunks of a batch durable first.
const RECEIPTS_MAX: Duration = Duration::from_secs(60);

/// What was staged.
pub(super) struct Staged {
    /// With receipts, in the order of the parts, and in that of its round for each of them.
    pub places: Vec<CommitPlace>,
    /// Runs of the drives of which there are any.
    pub runs: Vec<Option<u64>>,
    /// Without a receipt yet.
    waiting: Vec<Place>,
}

/// A chunk at a drive.
struct Place {
    position: u64,
    at: usize,
    chunk: ChunkRef,
}

/// Bytes that become one chunk, with their position.
type Ready = (u64, Bytes);

impl ServerDrives {
    /// Stages all bytes of a store. Where they go round several drives, so many parts are sent at a time; the next ones are read
    /// meanwhile. At most six parts are in memory.
    pub(super) async fn stage_all(
        self: &Arc<Self>,
        target: &Target,
        room: &Room,
        change: &StoreRequest<'_>,
        source: &mut dyn Source,
    ) -> Result<Staged, Ended> {
        let (mut staged, mut ready) = (Staged::at(room.drives.len()), Vec::new());
        let mut parts = parts(change);
        loop {
            let next: Vec<_> = parts.by_ref().take(room.rounds.width()).collect();
            let staging = self.stage((target, change.fid, room), std::mem::take(&mut ready), &mut staged);
            let (done, gathered) = join(staging, gather_all(source, next)).await;
            done.map_err(Ended::Fallback)?;
            ready = gathered?;
            if ready.is_empty() {
                break;
            }
        }
        self.take_receipts(room, &mut staged).await.map_err(Ended::Fallback)?;
        Ok(staged)
    }

    async fn stage(
        self: &Arc<Self>,
        (target, fid, room): (&Target, Fid, &Room),
        ready: Vec<Ready>,
        staged: &mut Staged,
    ) -> Result<(), Fallback> {
        let drives = |(position, bytes): Ready| {
            room.rounds.at(position).iter().map(move |at| (position, *at, bytes.clone()))
        };
        let writes: Vec<_> = ready.into_iter().flat_map(drives).collect();
        // They may share the way to the drives.
        let bytes: usize = writes.iter().map(|(_, _, bytes)| bytes.len()).sum();
        let most = STALL + Duration::from_secs(bytes as u64 / RATE_MIN);
        let write = async |(position, at, bytes): (u64, usize, Bytes)| {
            let drive = room.drives.get(at).ok_or(Fallback::NoRoom)?;
            let send = drive.link.with_chunk(async {
                match drive.is_commanded {
                    true => self.send_to((target, fid, room), drive, bytes).await,
                    false => drive.link.session.stage(&drive.handle, bytes).await,
                }
            });
            let chunk = self.at_room(drive, most, send).await?;
            Ok(Place { position, at, chunk })
        };
        for written in join_all(writes.into_iter().map(write)).await {
            staged.waiting.push(written?);
        }
        match staged.is_batch() {
            true => self.take_receipts(room, staged).await,
            false => Ok(()),
        }
    }

    async fn take_receipts(self: &Arc<Self>, room: &Room, staged: &mut Staged) -> Result<(), Fallback> {
        let told = room.drives.iter().enumerate().map(async |(at, drive)| {
            let chunks = staged.chunks_at(at);
            if chunks.is_empty() {
                return Ok(None);
            }
            let given = drive.link.session.receipts(&drive.handle, &chunks);
            self.at_room(drive, RECEIPTS_MAX, given).await.map(Some)
        });
        let told = join_all(told).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        staged.add(told)
    }

    /// A request to a drive of a room.
    async fn at_room<T: Send>(
        self: &Arc<Self>,
        drive: &AtDrive,
        most: Duration,
        work: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Fallback> {
        let done = self.common.env.timeout(most, work).await.unwrap_or(Err(Error::Stalled));
        done.map_err(|error| match Fallback::of(&error) {
            // What a drive says of a store says nothing of its reads.
            why if why.is_of_request() => why,
            why => self.failed(&drive.link, &drive.given, why),
        })
    }
}

impl Staged {
    fn at(drives: usize) -> Self {
        Self { places: Vec::new(), runs: vec![None; drives], waiting: Vec::new() }
    }

    /// Whether a drive has a batch without receipts.
    fn is_batch(&self) -> bool {
        (0..self.runs.len()).any(|drive| self.chunks_at(drive).len() >= BATCH)
    }

    /// The chunks at a drive that have no receipt yet.
    fn chunks_at(&self, drive: usize) -> Vec<ChunkRef> {
        self.waiting.iter().filter(|place| place.at == drive).map(|place| place.chunk).collect()
    }

    /// Adds what each drive has told of its chunks.
    fn add(&mut self, told: Vec<Option<Receipts>>) -> Result<(), Fallback> {
        let mut receipts = Vec::new();
        for (told, run) in told.into_iter().zip(&mut self.runs) {
            // A drive that was started again has none of what came before.
            if told.as_ref().is_some_and(|told| *run.get_or_insert(told.run) != told.run) {
                return Err(Fallback::Declined);
            }
            receipts.push(told.map_or(Vec::new(), |told| told.receipts).into_iter());
        }
        for Place { position, at, chunk } in self.waiting.drain(..) {
            let receipt = receipts.get_mut(at).and_then(Iterator::next).ok_or(Fallback::Declined)?;
            let (drive, chunk, receipt) = (at as u32, Fixed(chunk.to_bytes()), Fixed(receipt.0));
            self.places.push(CommitPlace { position, drive, chunk, receipt });
        }
        Ok(())
    }
}

/// All bytes of some parts.
async fn gather_all(source: &mut dyn Source, parts: Vec<Part<'_>>) -> Result<Vec<Ready>, Ended> {
    let mut ready = Vec::with_capacity(parts.len());
    for part in parts {
        ready.push((part.range.start, gather(source, part).await?));
    }
    Ok(ready)
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
