//! StoreRanges, a call of our own: several ranges of a file stored as one change, if the file still has the
//! version that the client's data is based on. Otherwise nothing is changed.

use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{EnvExt, ServerCall, Table};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs;
use afs_wire::xdr::{Decode, Reader};

use super::server::FileServer;
use super::store_change::Change;
use super::storing::{self, SHORT_DATA};
use crate::call_context::CallContext;

/// Time for the table of ranges (a kilobyte) to arrive.
const TABLE_TIME: Duration = Duration::from_secs(60);

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    super::streamed(table, |server: Arc<FileServer>, context, call, request: fs::StoreRanges| async move {
        storing::answer(call, async move |call| server.store_ranges(call, &context, request).await).await
    })
}

/// The table that precedes the bytes: a position and a length each, in ascending order and without overlap.
fn decode(table: &[u8], grown_to: u64) -> Result<Vec<(u64, u64)>, AbortCode> {
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
    if end.max(grown_to) > i64::MAX as u64 { Err(Errno::EFBIG.to_uae()) } else { Ok(ranges) }
}

impl FileServer {
    async fn store_ranges(
        self: &Arc<Self>,
        call: &mut ServerCall,
        context: &Arc<CallContext>,
        request: fs::StoreRanges,
    ) -> Result<fs::StatusReply, AbortCode> {
        let fs::StoreRanges { fid, status, file_length, grown_to, expected, .. } = request;
        let found = self.find_to_store(context, fid, &status).await?;
        if found.record.data_version != expected {
            return Err(Errno::EAGAIN.to_uae());
        }
        let count = usize::try_from(request.ranges).unwrap_or(usize::MAX);
        if count > fs::STORE_RANGES_MAX {
            return Err(Errno::EINVAL.to_uae());
        }
        let table = self.env.timeout(TABLE_TIME, call.read_exact(count * fs::STORE_RANGE_LEN)).await;
        let table = table.map_err(|_| SHORT_DATA)?.map_err(|_| SHORT_DATA)?;
        let ranges = decode(&table, grown_to)?;
        let change = Change { fid, status, file_length, ranges, grown_to, expected: Some(expected) };
        self.store(call, context, found, change).await
    }
}

#[cfg(test)]
mod tests {
    use afs_wire::xdr::Encode;

    use super::*;

    #[test]
    fn ranges_ascend_and_do_not_overlap() {
        let decoded = |ranges: &[(u64, u64)], grown_to| {
            let mut table = Vec::new();
            for (position, length) in ranges {
                position.encode(&mut table);
                length.encode(&mut table);
            }
            decode(&table, grown_to)
        };
        assert_eq!(decoded(&[], 9), Ok(vec![]));
        assert_eq!(decoded(&[(5, 10), (15, 1)], 0), Ok(vec![(5, 10), (15, 1)]));
        let (invalid, too_big) = (Err(Errno::EINVAL.to_uae()), Err(Errno::EFBIG.to_uae()));
        assert_eq!(decoded(&[(5, 10), (14, 1)], 0), invalid);
        assert_eq!(decoded(&[(5, 0)], 0), invalid);
        assert_eq!(decoded(&[(u64::MAX, 2)], 0), too_big);
        assert_eq!(decoded(&[(i64::MAX as u64, 1)], 0), too_big);
        assert_eq!(decoded(&[], u64::MAX), too_big);
    }
}
