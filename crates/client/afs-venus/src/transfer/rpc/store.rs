//! Store of one piece by a call.
//!
//! What is fetched of a large file comes by several calls at a time; what is stored goes by one. The protocol makes a version of each
//! StoreData call, so several of them would show others a file of which a part is new, and a client that dies in between would leave
//! it like that.

use std::sync::atomic::Ordering;

use afs_rpc::{CallError, ClientCall};
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, StatusReply};
use afs_wire::rpc::Request;

use super::{give_up, too_big};
use crate::calls::Target;
use crate::data::Piece;
use crate::transfer::{Source, StoreRequest, TransferResult};

pub(super) async fn store(
    target: &Target,
    change: &StoreRequest<'_>,
    piece: &Piece,
    source: &mut dyn Source,
) -> TransferResult<StatusReply> {
    let (fid, status) = (change.fid, change.status);
    let (position, length) = (piece.range.start, piece.range.end - piece.range.start);
    if !target.server.small_files_only.load(Ordering::Relaxed) {
        let request = fs::StoreData64 { fid, status, position, length, file_length: piece.file_length };
        match send(target, &request, piece, source).await {
            Err(CallError::Abort(AbortCode::RXGEN_OPCODE)) => {
                target.server.small_files_only.store(true, Ordering::Relaxed);
            }
            other => return other,
        }
    }
    let narrow = |n: u64| u32::try_from(n).map_err(|_| too_big());
    let request = fs::StoreData {
        fid,
        status,
        position: narrow(position)?,
        length: narrow(length)?,
        file_length: narrow(piece.file_length)?,
    };
    send(target, &request, piece, source).await
}

async fn send<R: Request<Reply = StatusReply>>(
    target: &Target,
    request: &R,
    piece: &Piece,
    source: &mut dyn Source,
) -> TransferResult<StatusReply> {
    let call = target.connection.open(request).await?;
    let mut call = write(call, piece, source).await?;
    call.finish_request()?;
    call.finish::<R>().await
}

/// Writes the bytes of a piece into a call. A call that cannot be completed is aborted.
pub(super) async fn write(
    mut call: ClientCall,
    piece: &Piece,
    source: &mut dyn Source,
) -> TransferResult<ClientCall> {
    let mut at = piece.range.start;
    while at < piece.range.end {
        let Ok(bytes) = source.next(piece, at).await else { return Err(give_up(call)) };
        at += bytes.len() as u64;
        call.write(bytes).await?;
    }
    Ok(call)
}
