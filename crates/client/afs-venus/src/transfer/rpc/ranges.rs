//! Store of several pieces as one change, by a call of Andrew's own: the request, the ranges, the bytes of each.

use std::sync::atomic::Ordering;

use afs_rpc::CallError;
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, StatusReply};
use afs_wire::ids::DataVersion;
use afs_wire::xdr::Encode;
use bytes::Bytes;

use super::store::write;
use crate::calls::Target;
use crate::data::Piece;
use crate::transfer::{Source, StoreRequest, TransferResult};

pub(super) async fn store(
    target: &Target,
    change: &StoreRequest<'_>,
    expected: DataVersion,
    source: &mut dyn Source,
) -> TransferResult<StatusReply> {
    let reply = send(target, change, expected, source).await;
    if let Err(CallError::Abort(AbortCode::RXGEN_OPCODE)) = reply {
        target.server.single_ranges_only.store(true, Ordering::Relaxed);
    }
    reply
}

async fn send(
    target: &Target,
    change: &StoreRequest<'_>,
    expected: DataVersion,
    source: &mut dyn Source,
) -> TransferResult<StatusReply> {
    let mut call = target.connection.open(&request(change, expected)).await?;
    let head = head(change);
    if !head.is_empty() {
        call.write(head).await?;
    }
    for piece in with_bytes(change) {
        call = write(call, piece, source).await?;
    }
    call.finish_request()?;
    call.finish::<fs::StoreRanges>().await
}

fn request(change: &StoreRequest<'_>, expected: DataVersion) -> fs::StoreRanges {
    let StoreRequest { fid, status, pieces, .. } = change;
    fs::StoreRanges {
        fid: *fid,
        status: *status,
        expected,
        file_length: pieces.first().map_or(0, |piece| piece.file_length),
        grown_to: pieces.last().map_or(0, |piece| piece.range.end),
        ranges: with_bytes(change).count() as u32,
    }
}

/// Position and length of each range.
fn head(change: &StoreRequest<'_>) -> Bytes {
    let mut head = Vec::with_capacity(change.pieces.len() * fs::STORE_RANGE_LEN);
    for piece in with_bytes(change) {
        piece.range.start.encode(&mut head);
        (piece.range.end - piece.range.start).encode(&mut head);
    }
    Bytes::from(head)
}

fn with_bytes<'a>(change: &StoreRequest<'a>) -> impl Iterator<Item = &'a Piece> + use<'a> {
    change.pieces.iter().filter(|piece| !piece.range.is_empty())
}
