//! StoreData, in both widths.
//!
//! The bytes go to the drive as they come, in bounded memory; one transaction then makes them the file. A client that
//! sends fewer than it said, or falls silent, has changed nothing, and holds memory and room for a bounded time
//! ([`crate::stores`]).

use std::sync::Arc;

use afs_rpc::{EnvExt, ServerCall, Table};
use afs_volume::{DataWriter, NewData, StoreData, VnodeRecord, VolumeHeader};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, SetStatus};
use afs_wire::ids::Fid;
use bytes::Bytes;

use super::object::{actor, check_within, is_file, sync};
use crate::access::Wish;
use crate::server::{FileServer, Visit};
use crate::stores::{Room, StoreUnderWay};
use crate::volume_states::Served;

/// What a client is told that sent fewer bytes than it said, or that sent them too slowly
/// (docs/protocol fileserver.md "4. Data framing on the split calls").
pub(super) const SHORT_DATA: AbortCode = AbortCode(-32);
/// KiB by which a store that is under way may overrun the quota (docs/protocol fileserver.md "11. Quota and space").
const SPARE: u64 = 1024;
/// Bytes of stores under way that are not compared with what is free on the partition.
const LARGE: u64 = 64 << 20;
/// Bytes taken from the transport at a time.
const PIECE: usize = 256 << 10;

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    let table =
        super::streamed(table, |server: Arc<FileServer>, visit, call, request: fs::StoreData| async move {
            server.store_data(call, visit, request.into()).await
        });
    super::streamed(table, |server: Arc<FileServer>, visit, call, request: fs::StoreData64| async move {
        server.store_data(call, visit, request.into()).await
    })
}

#[derive(Clone, Copy)]
struct Store {
    fid: Fid,
    status: SetStatus,
    position: u64,
    length: u64,
    file_length: u64,
    /// The last position that this width of the call can name.
    position_max: u64,
}

impl From<fs::StoreData> for Store {
    fn from(call: fs::StoreData) -> Self {
        Store {
            fid: call.fid,
            status: call.status,
            position: call.position.into(),
            length: call.length.into(),
            file_length: call.file_length.into(),
            position_max: i32::MAX as u64,
        }
    }
}

impl From<fs::StoreData64> for Store {
    fn from(call: fs::StoreData64) -> Self {
        Store {
            fid: call.fid,
            status: call.status,
            position: call.position,
            length: call.length,
            file_length: call.file_length,
            position_max: i64::MAX as u64,
        }
    }
}

impl Store {
    fn check_bounds(&self) -> Result<(), AbortCode> {
        let end = self.position.checked_add(self.length);
        if self.file_length > self.position_max || end.is_none_or(|end| end > self.position_max) {
            return Err(Errno::EFBIG.to_uae());
        }
        Ok(())
    }

    /// KiB by which the file grows at its end. What lies in holes, and what exactly a cut gives back, only the transaction knows.
    fn growth(&self, record: &VnodeRecord) -> u64 {
        let kept = record.length.min(self.file_length);
        let given_back = if kept < record.length { record.blocks() } else { 0 };
        let new = (self.position + self.length).saturating_sub(self.position.max(kept));
        new.div_ceil(1024).saturating_sub(given_back)
    }

    /// Refuses what the quota cannot hold before its bytes travel. The transaction decides for good.
    fn check_quota(&self, header: &VolumeHeader, record: &VnodeRecord) -> Result<(), AbortCode> {
        check_room(header, self.growth(record))
    }
}

/// Whether files may grow by so many KiB, or nearly.
pub(super) fn check_room(header: &VolumeHeader, growth: u64) -> Result<(), AbortCode> {
    let (growth, quota) = (growth.saturating_sub(SPARE), u64::from(header.max_quota));
    if growth > 0 && quota != 0 && header.blocks_used + growth > quota {
        return Err(AbortCode::VOVERQUOTA);
    }
    Ok(())
}

impl FileServer {
    async fn store_data(
        self: Arc<Self>,
        mut call: ServerCall,
        visit: Arc<Visit>,
        store: Store,
    ) -> Result<(), (ServerCall, AbortCode)> {
        match self.store_stream(&mut call, &visit, store).await {
            Ok(reply) => {
                // The client is gone if this fails; its data is stored all the same.
                let _ = call.reply(&reply).await;
                Ok(())
            }
            Err(code) => Err((call, code)),
        }
    }

    async fn store_stream(
        self: &Arc<Self>,
        call: &mut ServerCall,
        visit: &Arc<Visit>,
        store: Store,
    ) -> Result<fs::StatusReply, AbortCode> {
        store.check_bounds()?;
        let found = self.find_to_change(visit, store.fid)?;
        if !is_file(&found.record) {
            return Err(Errno::EISDIR.to_uae());
        }
        found.check(&visit.subject, Wish::StoreData(&store.status))?;
        store.check_quota(&found.header, &found.record)?;
        let growth = store.growth(&found.record) * 1024;
        let address = call.caller().peer.ip();
        let under_way = self.stores.begin(address, store.fid.volume, store.length, growth);
        let data = self.receive(call, &found.served, store, under_way).await?;
        self.statistics.count_stored_data(data.len());
        self.wait_for(store.fid.volume, true).await;
        self.commit_store(visit, &found.served, store, data).await
    }

    /// Takes the announced bytes from the client and puts them on the drive.
    async fn receive(
        &self,
        call: &mut ServerCall,
        served: &Served,
        store: Store,
        mut under_way: StoreUnderWay,
    ) -> Result<NewData, AbortCode> {
        let failed = |error| self.code(store.fid, &error);
        let mut writer = served.volume.write_data(store.position).map_err(failed)?;
        self.take_bytes(call, served, &mut writer, store.length, &mut under_way).await?;
        writer.finish().await.map_err(failed)
    }

    /// Takes so many bytes from the client to the drive: in time, in bounded memory, and no more than there is room for.
    pub(super) async fn take_bytes(
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

    async fn commit_store(
        self: &Arc<Self>,
        visit: &Arc<Visit>,
        served: &Served,
        store: Store,
        data: NewData,
    ) -> Result<fs::StatusReply, AbortCode> {
        let Store { fid, status, file_length, .. } = store;
        let subject = visit.subject.clone();
        served.volume.compact_for(fid, &data).await.map_err(|error| self.code(fid, &error))?;
        let change = self.change(served, fid, move |tx| {
            // The rights may have changed while the bytes came in.
            let record = tx.vnode(fid)?;
            let acl = check_within(tx, &record, &subject, Wish::StoreData(&status))?;
            let store = StoreData { fid, file_length, status, expected: None };
            let record = tx.store_data(store, data, actor(&subject))?;
            Ok((record, acl))
        });
        let (record, acl) = change.await?;
        self.clients.start_breaks(fid, Some(visit.host.id())).answered().await;
        let header = served.volume.header();
        let status = self.status(&visit.subject, &header, &record, &acl);
        Ok(fs::StatusReply { status, sync: sync(&header) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrow_call_ends_at_two_gib() {
        let narrow = |position, length, file_length| {
            let status = SetStatus::default();
            Store::from(fs::StoreData { fid: Fid::default(), status, position, length, file_length })
                .check_bounds()
        };
        let too_big = Err(Errno::EFBIG.to_uae());
        assert_eq!(narrow(0x7fff_fff0, 15, 0x7fff_ffff), Ok(()));
        assert_eq!(narrow(0x7fff_fff0, 16, 0), too_big);
        assert_eq!(narrow(0x8000_0000, 0, 0), too_big);
        assert_eq!(narrow(0, 0, 0x8000_0000), too_big);
    }

    #[test]
    fn the_wide_call_ends_at_63_bits() {
        let wide = |position, length, file_length| {
            let status = SetStatus::default();
            Store::from(fs::StoreData64 { fid: Fid::default(), status, position, length, file_length })
                .check_bounds()
        };
        assert_eq!(wide(1 << 40, 1 << 40, 0), Ok(()));
        for (position, length, file_length) in [(u64::MAX, 1, 0), (i64::MAX as u64, 1, 0), (0, 0, u64::MAX)] {
            assert_eq!(wide(position, length, file_length), Err(Errno::EFBIG.to_uae()));
        }
    }
}
