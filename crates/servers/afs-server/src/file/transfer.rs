//! Transfer of a store's bytes from a source to the drive, within its time-outs, its memory and the free
//! space.

use afs_rpc::EnvExt;
use afs_volume::{DataWriter, NewData};
use afs_wire::error::AbortCode;
use afs_wire::ids::Fid;
use bytes::Bytes;

use super::server::FileServer;
use super::store_change::Change;
use super::stores::{Room, StoreUnderWay};
use super::storing::{SHORT_DATA, SPARE};
use crate::flow::{Broken, Source};
use crate::volume_states::Served;

/// Bytes of stores in progress that are not compared with the free space of the partition.
const LARGE: u64 = 64 << 20;
/// Bytes taken from the transport at a time.
const PIECE: usize = 256 << 10;

impl FileServer {
    /// Takes the announced bytes from the client and writes them to the drive.
    pub(super) async fn receive(
        &self,
        source: &mut impl Source,
        served: &Served,
        change: &Change,
        under_way: &mut StoreUnderWay,
    ) -> Result<NewData, AbortCode> {
        let failed = |error| self.code(change.fid, &error);
        let first = change.ranges.first().map_or(change.grown_to, |range| range.0);
        let mut writer = served.volume.write_data(first).map_err(failed)?;
        for (position, length) in &change.ranges {
            writer.skip_to(*position).await.map_err(failed)?;
            self.take_bytes(source, served, &mut writer, *length, under_way).await?;
        }
        if change.grown_to > change.end() {
            writer.skip_to(change.grown_to).await.map_err(failed)?;
        }
        writer.finish().await.map_err(failed)
    }

    /// Takes `length` bytes from the client to the drive, within the time-outs, bounded memory and the free
    /// space.
    async fn take_bytes(
        &self,
        source: &mut impl Source,
        served: &Served,
        writer: &mut DataWriter,
        length: u64,
        under_way: &mut StoreUnderWay,
    ) -> Result<(), AbortCode> {
        let mut left = length;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            let pieces = self.next_pieces(source, most, under_way).await?;
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
                pushed.map_err(|error| self.code(Fid::root(served.site.volume), &error))?;
            }
        }
        Ok(())
    }

    /// The next bytes, if the client sends them in time.
    async fn next_pieces(
        &self,
        source: &mut impl Source,
        most: usize,
        under_way: &mut StoreUnderWay,
    ) -> Result<Vec<Bytes>, AbortCode> {
        loop {
            let asked = self.env.now();
            let read = self.env.timeout(under_way.patience(), source.next(most)).await;
            if !under_way.waited(self.env.now() - asked, read.is_err()) {
                return Err(SHORT_DATA);
            }
            if let Ok(read) = read {
                return read.map_err(|Broken| SHORT_DATA);
            }
        }
    }

    /// Whether the bytes of all stores in progress in a volume still fit into it. Bytes that replace others
    /// need space too until they do: as much again as the volume's quota, or half of the free space for a
    /// volume without quota.
    pub(super) fn check_under_way(
        &self,
        served: &Served,
        room: Room,
        store: &StoreUnderWay,
    ) -> Result<(), AbortCode> {
        let header = served.volume.header();
        let quota = u64::from(header.max_quota);
        if quota != 0 {
            return if room.bytes / 1024 > quota + SPARE { Err(AbortCode::VBUSY) } else { Ok(()) };
        }
        let everywhere = store.everywhere();
        if everywhere < LARGE {
            return Ok(());
        }
        let usage = self.partitions.store(served.site.partition).and_then(|store| store.usage().ok());
        match usage {
            Some(usage) if everywhere > usage.free => Err(AbortCode::VDISKFULL),
            _ => Ok(()),
        }
    }
}
