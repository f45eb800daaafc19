//! Storing bytes of a file, whichever call brings them.
//!
//! The bytes go to the drive as they come, in bounded memory; one transaction then makes them the file. A client that
//! sends fewer than it said, or falls silent, has changed nothing, and holds memory and room for a bounded time
//! ([`crate::stores`]).

use std::sync::Arc;

use afs_rpc::{EnvExt, ServerCall};
use afs_volume::{DataWriter, NewData, StoreData, VnodeRecord, VolumeHeader};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{SetStatus, StatusReply};
use afs_wire::ids::{DataVersion, Fid};
use bytes::Bytes;

use super::object::{Found, actor, check_within, is_file, sync};
use crate::access::Wish;
use crate::server::{FileServer, Visit};
use crate::stores::{Room, StoreUnderWay};
use crate::volume_states::Served;

/// Abort code for a client that sent fewer bytes than it announced, or sent them too slowly
/// (docs/protocol fileserver.md "4. Data framing on the split calls").
pub(super) const SHORT_DATA: AbortCode = AbortCode(-32);
/// KiB by which a store that is under way may overrun the quota (docs/protocol fileserver.md "11. Quota and space").
const SPARE: u64 = 1024;
/// Bytes of stores under way that are not compared with what is free on the partition.
const LARGE: u64 = 64 << 20;
/// Bytes taken from the transport at a time.
const PIECE: usize = 256 << 10;

/// One change of a file's data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Change {
    pub(super) fid: Fid,
    pub(super) status: SetStatus,
    /// What the file is cut to before, if it is longer.
    pub(super) file_length: u64,
    /// Positions and lengths, in ascending order, without overlap, none of them empty. Their bytes follow in this order.
    pub(super) ranges: Vec<(u64, u64)>,
    /// What the file is grown to with zeros, if it is shorter.
    pub(super) grown_to: u64,
    /// The version that the file must have; `None` for any.
    pub(super) expected: Option<DataVersion>,
}

impl Change {
    /// Bytes in all ranges.
    fn len(&self) -> u64 {
        self.ranges.iter().map(|(_, length)| length).sum()
    }

    /// Where the last range ends.
    fn end(&self) -> u64 {
        self.ranges.last().map_or(0, |(position, length)| position + length)
    }

    /// KiB by which the file grows behind the end of what is kept of it. What lies in holes, and what exactly a cut gives back, only the
    /// transaction knows.
    fn growth(&self, record: &VnodeRecord) -> u64 {
        let kept = record.length.min(self.file_length);
        let given_back = if kept < record.length { record.blocks() } else { 0 };
        let behind =
            |(position, length): &(u64, u64)| (position + length).saturating_sub(kept.max(*position));
        self.ranges.iter().map(behind).sum::<u64>().div_ceil(1024).saturating_sub(given_back)
    }
}

/// Whether files may grow by so many KiB, or nearly.
fn check_room(header: &VolumeHeader, growth: u64) -> Result<(), AbortCode> {
    let (growth, quota) = (growth.saturating_sub(SPARE), u64::from(header.max_quota));
    if growth > 0 && quota != 0 && header.blocks_used + growth > quota {
        return Err(AbortCode::VOVERQUOTA);
    }
    Ok(())
}

/// Answers a call that brings bytes.
pub(super) async fn answer(
    mut call: ServerCall,
    stored: impl AsyncFnOnce(&mut ServerCall) -> Result<StatusReply, AbortCode>,
) -> Result<(), (ServerCall, AbortCode)> {
    match stored(&mut call).await {
        Ok(reply) => {
            // The client is gone if this fails; its data is stored all the same.
            let _ = call.reply(&reply).await;
            Ok(())
        }
        Err(code) => Err((call, code)),
    }
}

impl FileServer {
    /// The file that bytes are to be stored in, by one who may.
    pub(super) async fn find_to_store(
        &self,
        visit: &Visit,
        fid: Fid,
        status: &SetStatus,
    ) -> Result<Found, AbortCode> {
        let found = self.find_to_change(visit, fid).await?;
        if !is_file(&found.record) {
            return Err(Errno::EISDIR.to_uae());
        }
        found.check(&visit.subject, Wish::StoreData(status))?;
        Ok(found)
    }

    /// Takes the bytes of a change and makes it.
    pub(super) async fn store(
        self: &Arc<Self>,
        call: &mut ServerCall,
        visit: &Arc<Visit>,
        found: &Found,
        change: Change,
    ) -> Result<StatusReply, AbortCode> {
        // What the quota cannot hold is refused before its bytes travel. The transaction decides for good.
        let growth = change.growth(&found.record);
        check_room(&found.header, growth)?;
        let (address, volume) = (call.caller().peer.ip(), change.fid.volume);
        let under_way = self.stores.begin(address, volume, change.len(), growth * 1024);
        let data = self.receive(call, &found.served, &change, under_way).await?;
        self.statistics.count_stored_data(data.len());
        self.wait_for(volume, true).await;
        self.commit_change(visit, &found.served, change, data).await
    }

    /// Takes the announced bytes from the client and puts them on the drive.
    async fn receive(
        &self,
        call: &mut ServerCall,
        served: &Served,
        change: &Change,
        mut under_way: StoreUnderWay,
    ) -> Result<NewData, AbortCode> {
        let failed = |error| self.code(change.fid, &error);
        let first = change.ranges.first().map_or(change.grown_to, |range| range.0);
        let mut writer = served.volume.write_data(first).map_err(failed)?;
        for (position, length) in &change.ranges {
            writer.skip_to(*position).await.map_err(failed)?;
            self.take_bytes(call, served, &mut writer, *length, &mut under_way).await?;
        }
        if change.grown_to > change.end() {
            writer.skip_to(change.grown_to).await.map_err(failed)?;
        }
        writer.finish().await.map_err(failed)
    }

    /// Takes so many bytes from the client to the drive: in time, in bounded memory, and no more than there is room for.
    async fn take_bytes(
        &self,
        call: &mut ServerCall,
        served: &Served,
        writer: &mut DataWriter,
        length: u64,
        under_way: &mut StoreUnderWay,
    ) -> Result<(), AbortCode> {
        let mut left = length;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            let pieces = self.next_pieces(call, most, under_way).await?;
            if pieces.is_empty() {
                return Err(SHORT_DATA);
            }
            under_way.take_memory().await;
            let bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
            let room = under_way.came(bytes);
            self.check_under_way(served, room, under_way)?;
            left = left.saturating_sub(bytes);
            for piece in pieces {
                let pushed = writer.push(piece).await;
                pushed.map_err(|error| self.code(Fid::root(served.place.volume), &error))?;
            }
        }
        Ok(())
    }

    /// The next bytes, if the client sends them in time.
    async fn next_pieces(
        &self,
        call: &mut ServerCall,
        most: usize,
        under_way: &mut StoreUnderWay,
    ) -> Result<Vec<Bytes>, AbortCode> {
        loop {
            let asked = self.env.now();
            let read = self.env.timeout(under_way.patience(), call.read_pieces(most)).await;
            if !under_way.waited(self.env.now() - asked, read.is_err()) {
                return Err(SHORT_DATA);
            }
            if let Ok(read) = read {
                return read.map_err(|_| SHORT_DATA);
            }
        }
    }

    /// Whether the bytes of all stores that are under way in a volume still fit into it. Those that replace others need room
    /// too until they do: as much again as the volume may hold, or half of what is free where it has no quota.
    fn check_under_way(&self, served: &Served, room: Room, store: &StoreUnderWay) -> Result<(), AbortCode> {
        let header = served.volume.header();
        check_room(&header, room.growth / 1024)?;
        let quota = u64::from(header.max_quota);
        if quota != 0 {
            return if room.bytes / 1024 > quota + SPARE { Err(AbortCode::VBUSY) } else { Ok(()) };
        }
        let everywhere = store.everywhere();
        if everywhere < LARGE {
            return Ok(());
        }
        let usage = self.partitions.store(served.place.partition).and_then(|store| store.usage().ok());
        match usage {
            Some(usage) if everywhere > usage.free => Err(AbortCode::VDISKFULL),
            _ => Ok(()),
        }
    }

    async fn commit_change(
        self: &Arc<Self>,
        visit: &Arc<Visit>,
        served: &Served,
        change: Change,
        data: NewData,
    ) -> Result<StatusReply, AbortCode> {
        let Change { fid, status, file_length, expected, .. } = change;
        let subject = visit.subject.clone();
        served.volume.compact_for(fid, &data).await.map_err(|error| self.code(fid, &error))?;
        let change = self.change(served, fid, move |tx| {
            // The rights may have changed while the bytes came in.
            let record = tx.vnode(fid)?;
            let acl = check_within(tx, &record, &subject, Wish::StoreData(&status))?;
            let store = StoreData { fid, file_length, status, expected };
            let record = tx.store_data(store, data, actor(&subject))?;
            Ok((record, acl))
        });
        let (record, acl) = change.await?;
        self.clients.start_breaks(fid, Some(visit.host.id())).answered().await;
        let header = served.volume.header();
        let status = self.status(&visit.subject, &header, &record, &acl);
        Ok(StatusReply { status, sync: sync(&header) })
    }
}
