//! StoreData, in both widths: one range of a file.

use std::sync::Arc;

use afs_rpc::{ServerCall, Table};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs;

use super::server::FileServer;
use super::store_change::Change;
use super::storing;
use crate::call_context::CallContext;

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    let table =
        super::streamed(table, |server: Arc<FileServer>, context, call, request: fs::StoreData| async move {
            server.store_data(call, context, narrow(request)).await
        });
    super::streamed(table, |server: Arc<FileServer>, context, call, request: fs::StoreData64| async move {
        server.store_data(call, context, wide(request, i64::MAX as u64)).await
    })
}

fn narrow(call: fs::StoreData) -> Result<Change, AbortCode> {
    let fs::StoreData { fid, status, position, length, file_length } = call;
    let (position, length, file_length) = (position.into(), length.into(), file_length.into());
    wide(fs::StoreData64 { fid, status, position, length, file_length }, i32::MAX as u64)
}

/// The change that a call requests; `position_max` is the last position that the call can name. Without bytes
/// it grows the file to the position.
pub(super) fn wide(call: fs::StoreData64, position_max: u64) -> Result<Change, AbortCode> {
    let fs::StoreData64 { fid, status, position, length, file_length } = call;
    let end = position.checked_add(length).filter(|end| *end <= position_max);
    if file_length > position_max || end.is_none() {
        return Err(Errno::EFBIG.to_uae());
    }
    let (ranges, grown_to) = if length == 0 { (vec![], position) } else { (vec![(position, length)], 0) };
    Ok(Change { fid, status, file_length, ranges, grown_to, expected: None })
}

impl FileServer {
    async fn store_data(
        self: Arc<Self>,
        call: ServerCall,
        context: Arc<CallContext>,
        change: Result<Change, AbortCode>,
    ) -> Result<(), (ServerCall, AbortCode)> {
        storing::answer(call, async move |call| {
            let change = change?;
            let found = self.find_to_store(&context, change.fid, &change.status).await?;
            self.store(call, &context, found, change).await
        })
        .await
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use afs_wire::fs::SetStatus;
    use afs_wire::ids::Fid;

    use super::*;

    #[test]
    fn the_narrow_call_ends_at_two_gib() {
        let narrow = |position, length, file_length| {
            let (fid, status) = (Fid::default(), SetStatus::default());
            narrow(fs::StoreData { fid, status, position, length, file_length }).map(drop)
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
            let (fid, status) = (Fid::default(), SetStatus::default());
            wide(fs::StoreData64 { fid, status, position, length, file_length }, i64::MAX as u64)
        };
        assert_eq!(wide(1 << 40, 1 << 40, 0).unwrap().ranges, [(1 << 40, 1 << 40)]);
        let grown = wide(5, 0, 9).unwrap();
        assert_eq!((grown.ranges, grown.grown_to), (vec![], 5));
        for (position, length, file_length) in [(u64::MAX, 1, 0), (i64::MAX as u64, 1, 0), (0, 0, u64::MAX)] {
            assert_eq!(wide(position, length, file_length), Err(Errno::EFBIG.to_uae()));
        }
    }
}
