//! Staging: the bytes of a store as chunks in a room, at all drives that are to have them.

use std::sync::Arc;
use std::time::Duration;

use afs_datapath::frame::Content;
use afs_datapath::session::Error;
use afs_drive::ChunkRef;
use afs_rpc::EnvExt;
use afs_rpc::future::{join, join_all};
use afs_wire::fs::{COMMIT_SLOT_LEN, ChunkToTake, CommitPlace, Order};
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

/// Bytes that become one chunk, with their position.
type Ready = (u64, Bytes);

impl ServerDrives {
    /// Stages all bytes of a store: the chunks, in the order of the parts, and in that of its round for each of them. Where they go round
    /// several drives, so many parts are sent at a time; the next ones are read meanwhile. At most six parts are in memory.
    pub(super) async fn stage_all(
        self: &Arc<Self>,
        target: &Target,
        room: &Room,
        change: &StoreRequest<'_>,
        source: &mut dyn Source,
    ) -> Result<Vec<CommitPlace>, Ended> {
        let (mut staged, mut ready) = (Vec::new(), Vec::new());
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
        Ok(staged)
    }

    async fn stage(
        self: &Arc<Self>,
        (target, fid, room): (&Target, Fid, &Room),
        ready: Vec<Ready>,
        staged: &mut Vec<CommitPlace>,
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
            Ok(CommitPlace { position, drive: at as u32, chunk: Fixed(chunk.to_bytes()) })
        };
        for written in join_all(writes.into_iter().map(write)).await {
            staged.push(written?);
        }
        Ok(())
    }

    /// Sends a chunk into a room for a file, when the file server has commanded it.
    async fn send_to(
        &self,
        (target, fid, room): (&Target, Fid, &Room),
        at: &AtDrive,
        bytes: Bytes,
    ) -> Result<ChunkRef, Error> {
        let (number, transfer) = self.transfer();
        let Content { length, crc: checksum } = Content::of(&bytes);
        let order = Order::Take(ChunkToTake { room: room.number, transfer, length, checksum });
        let sent = at.link.session.send(&at.handle, number, bytes);
        self.commanded(target, (fid, at.drive, order), sent).await
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
