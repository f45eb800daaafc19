//! Fetch by an Rx call: a count, the bytes, a status.

use std::sync::atomic::Ordering;

use afs_rpc::{CallError, ClientCall};
use afs_wire::error::AbortCode;
use afs_wire::fs;
use afs_wire::ids::Fid;
use afs_wire::rpc::Streamed;
use bytes::Bytes;

use super::{give_up, too_big};
use crate::calls::Target;
use crate::transfer::{Fetched, PIECE, Sink, TransferResult, Wanted};

pub(super) async fn fetch(target: &Target, wanted: &Wanted, sink: &mut dyn Sink) -> TransferResult<Fetched> {
    let Wanted { fid, range, .. } = wanted;
    let (mut call, mut left) = open(target, *fid, range.start, range.end - range.start).await?;
    sink.begin(left);
    while left > 0 {
        let parts = read_piece(&mut call, left.min(PIECE) as usize).await?;
        left -= parts.iter().map(|part| part.len() as u64).sum::<u64>();
        if sink.put(parts).await.is_err() {
            return Err(give_up(call));
        }
    }
    match sink.end().await {
        Ok(()) => Ok(Fetched::ByCall(call.finish::<fs::FetchData64>().await?)),
        Err(_) => Err(give_up(call)),
    }
}

/// Starts the call; returns it with the number of bytes to come. Old servers know only the call with 32-bit lengths.
async fn open(target: &Target, fid: Fid, pos: u64, len: u64) -> TransferResult<(ClientCall, u64)> {
    let bad = |_| too_big();
    let connection = &target.connection;
    if !target.server.small_files_only.load(Ordering::Relaxed) {
        let (position, length) = (i64::try_from(pos).map_err(bad)?, i64::try_from(len).map_err(bad)?);
        let mut call = connection.open(&fs::FetchData64 { fid, position, length }).await?;
        call.finish_request()?;
        match call.read_exact(fs::FetchData64::COUNT_LEN).await {
            Ok(count) => return Ok((call, checked_count(&count, len)?)),
            Err(CallError::Abort(AbortCode::RXGEN_OPCODE)) => {
                target.server.small_files_only.store(true, Ordering::Relaxed);
            }
            Err(error) => return Err(error),
        }
    }
    let (position, length) = (i32::try_from(pos).map_err(bad)?, i32::try_from(len).map_err(bad)?);
    let mut call = connection.open(&fs::FetchData { fid, position, length }).await?;
    call.finish_request()?;
    let count = call.read_exact(fs::FetchData::COUNT_LEN).await?;
    Ok((call, checked_count(&count, len)?))
}

/// Decodes the number of bytes that follow: never more than requested.
fn checked_count(count: &[u8], asked: u64) -> TransferResult<u64> {
    let count = count.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    if count > asked { Err(CallError::TooLong { limit: asked as usize }) } else { Ok(count) }
}

/// Up to `max` bytes, in the parts in which they came.
async fn read_piece(call: &mut ClientCall, max: usize) -> TransferResult<Vec<Bytes>> {
    let parts = call.read_pieces(max).await?;
    if parts.is_empty() { Err(CallError::Ended) } else { Ok(parts) }
}
