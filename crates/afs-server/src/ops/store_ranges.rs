//! StoreRanges, a call of our own: several ranges of a file as one change of it, if it still has the version that the client
//! has changed.
//!
//! As with StoreData the bytes go to the drive as they come, and one transaction then makes them part of the file: a client
//! that falls silent, and one whose version is not the newest any more, have changed nothing.

use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{EnvExt, ServerCall, Table};
use afs_volume::{NewData, StoreData, VnodeRecord};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs;
use afs_wire::xdr::{Decode, Reader};

use super::object::{actor, check_within, is_file, sync};
use super::store::{SHORT_DATA, check_room};
use crate::access::Wish;
use crate::server::{FileServer, Visit};
use crate::stores::StoreUnderWay;
use crate::volume_states::Served;

/// How long a client may take for the table of ranges, a kilobyte.
const TABLE_TIME: Duration = Duration::from_secs(60);

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    super::streamed(table, |server: Arc<FileServer>, visit, call, request: fs::StoreRanges| async move {
        server.store_ranges(call, visit, request).await
    })
}

/// Where bytes go, in ascending order and without overlap.
#[derive(PartialEq, Eq, Debug)]
struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// The table that precedes the bytes: a position and a length each.
    fn decode(table: &[u8], grown_to: u64) -> Result<Ranges, AbortCode> {
        let mut reader = Reader::new(table);
        let (mut ranges, mut end) = (Vec::with_capacity(table.len() / fs::STORE_RANGE_LEN), 0);
        for _ in 0..table.len() / fs::STORE_RANGE_LEN {
            let words = u64::decode(&mut reader).and_then(|at| Ok((at, u64::decode(&mut reader)?)));
            let (position, length) = words.map_err(|_| AbortCode::RXGEN_SS_UNMARSHAL)?;
            if length == 0 || position < end {
                return Err(Errno::EINVAL.to_uae());
            }
            end = position.checked_add(length).ok_or(Errno::EFBIG.to_uae())?;
            ranges.push((position, length));
        }
        match end.max(grown_to) > i64::MAX as u64 {
            true => Err(Errno::EFBIG.to_uae()),
            false => Ok(Ranges(ranges)),
        }
    }

    /// Bytes in all ranges.
    fn len(&self) -> u64 {
        self.0.iter().map(|(_, length)| length).sum()
    }

    /// Bytes that come behind a position.
    fn behind(&self, end: u64) -> u64 {
        self.0.iter().map(|(position, length)| (position + length).saturating_sub(end.max(*position))).sum()
    }

    fn end(&self) -> u64 {
        self.0.last().map_or(0, |(position, length)| position + length)
    }
}

/// KiB by which the file grows behind the end of what is kept of it. What lies in holes, and what exactly a cut gives back, only
/// the transaction knows.
fn growth(record: &VnodeRecord, kept: u64, ranges: &Ranges) -> u64 {
    let given_back = if kept < record.length { record.blocks() } else { 0 };
    ranges.behind(kept).div_ceil(1024).saturating_sub(given_back)
}

impl FileServer {
    async fn store_ranges(
        self: Arc<Self>,
        mut call: ServerCall,
        visit: Arc<Visit>,
        request: fs::StoreRanges,
    ) -> Result<(), (ServerCall, AbortCode)> {
        match self.store_ranges_of(&mut call, &visit, request).await {
            Ok(reply) => {
                // The client is gone if this fails; its data is stored all the same.
                let _ = call.reply(&reply).await;
                Ok(())
            }
            Err(code) => Err((call, code)),
        }
    }

    async fn store_ranges_of(
        self: &Arc<Self>,
        call: &mut ServerCall,
        visit: &Arc<Visit>,
        request: fs::StoreRanges,
    ) -> Result<fs::StatusReply, AbortCode> {
        let found = self.find_to_change(visit, request.fid)?;
        if !is_file(&found.record) {
            return Err(Errno::EISDIR.to_uae());
        }
        found.check(&visit.subject, Wish::StoreData(&request.status))?;
        if found.record.data_version != request.expected {
            return Err(Errno::EAGAIN.to_uae());
        }
        let count = usize::try_from(request.ranges).unwrap_or(usize::MAX);
        if count > fs::STORE_RANGES_MAX {
            return Err(Errno::EINVAL.to_uae());
        }
        let table = self.env.timeout(TABLE_TIME, call.read_exact(count * fs::STORE_RANGE_LEN)).await;
        let table = table.map_err(|_| SHORT_DATA)?.map_err(|_| SHORT_DATA)?;
        let ranges = Ranges::decode(&table, request.grown_to)?;
        let kept = found.record.length.min(request.file_length);
        // The transaction decides for good.
        let growth = growth(&found.record, kept, &ranges);
        check_room(&found.header, growth)?;
        let address = call.caller().peer.ip();
        let under_way = self.stores.begin(address, request.fid.volume, ranges.len(), growth * 1024);
        let data = self.receive_ranges(call, &found.served, &request, &ranges, under_way).await?;
        self.statistics.count_stored_data(data.len());
        self.wait_for(request.fid.volume, true).await;
        self.commit_ranges(visit, &found.served, request, data).await
    }

    /// Takes the bytes of all ranges from the client and puts them on the drive.
    async fn receive_ranges(
        &self,
        call: &mut ServerCall,
        served: &Served,
        request: &fs::StoreRanges,
        ranges: &Ranges,
        mut under_way: StoreUnderWay,
    ) -> Result<NewData, AbortCode> {
        let failed = |error| self.code(request.fid, &error);
        let first = ranges.0.first().map_or(request.grown_to, |range| range.0);
        let mut writer = served.volume.write_data(first).map_err(failed)?;
        for (position, length) in &ranges.0 {
            writer.skip_to(*position).await.map_err(failed)?;
            self.take_bytes(call, served, &mut writer, *length, &mut under_way).await?;
        }
        if request.grown_to > ranges.end() {
            writer.skip_to(request.grown_to).await.map_err(failed)?;
        }
        writer.finish().await.map_err(failed)
    }

    async fn commit_ranges(
        self: &Arc<Self>,
        visit: &Arc<Visit>,
        served: &Served,
        request: fs::StoreRanges,
        data: NewData,
    ) -> Result<fs::StatusReply, AbortCode> {
        let fs::StoreRanges { fid, status, file_length, expected, .. } = request;
        let subject = visit.subject.clone();
        served.volume.compact_for(fid, &data).await.map_err(|error| self.code(fid, &error))?;
        let change = self.change(served, fid, move |tx| {
            // The rights may have changed while the bytes came in.
            let record = tx.vnode(fid)?;
            let acl = check_within(tx, &record, &subject, Wish::StoreData(&status))?;
            let store = StoreData { fid, file_length, status, expected: Some(expected) };
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
    use afs_wire::xdr::Encode;

    use super::*;

    #[test]
    fn ranges_ascend_and_do_not_overlap() {
        let decode = |ranges: &[(u64, u64)], grown_to| {
            let mut table = Vec::new();
            for (position, length) in ranges {
                position.encode(&mut table);
                length.encode(&mut table);
            }
            Ranges::decode(&table, grown_to)
        };
        assert_eq!(decode(&[], 9), Ok(Ranges(vec![])));
        assert_eq!(decode(&[(5, 10), (15, 1)], 0), Ok(Ranges(vec![(5, 10), (15, 1)])));
        let (invalid, too_big) = (Err(Errno::EINVAL.to_uae()), Err(Errno::EFBIG.to_uae()));
        assert_eq!(decode(&[(5, 10), (14, 1)], 0), invalid);
        assert_eq!(decode(&[(5, 0)], 0), invalid);
        assert_eq!(decode(&[(u64::MAX, 2)], 0), too_big);
        assert_eq!(decode(&[(i64::MAX as u64, 1)], 0), too_big);
        assert_eq!(decode(&[], u64::MAX), too_big);
    }
}
