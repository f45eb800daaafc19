//! Sending all that is unsaved of a file as one change of it.
//!
//! The call names the version that was changed here: where the server has another one it changes nothing, so that parts
//! of two versions never come together unnoticed, and nobody sees some of the ranges without the others.

use std::sync::atomic::Ordering;

use afs_rpc::CallError;
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, StatusReply};
use afs_wire::ids::DataVersion;
use afs_wire::rpc::Request;
use afs_wire::xdr::Encode;
use bytes::Bytes;

use crate::asking::Target;
use crate::counters::add;
use crate::data::Piece;
use crate::error::{ErrorKind, Result};
use crate::venus::Venus;
use crate::venus::sending::{Sending, Sent};

impl Venus {
    /// Sends all pieces, as many in a call as it takes, into the version `expected`. Nothing to send is success.
    pub(super) async fn send_as_one(
        &self,
        sending: &Sending<'_>,
        pieces: &[Piece],
        mut expected: DataVersion,
        any: &mut bool,
    ) -> Result<Sent> {
        for pieces in pieces.chunks(fs::STORE_RANGES_MAX) {
            let sent = self.send_some(sending, pieces, expected).await?;
            if sent != Sent::All {
                return Ok(sent);
            }
            *any = true;
            expected = sending.data.content().version;
        }
        Ok(Sent::All)
    }

    async fn send_some(
        &self,
        sending: &Sending<'_>,
        pieces: &[Piece],
        expected: DataVersion,
    ) -> Result<Sent> {
        let Sending { vnode, volume, data, .. } = sending;
        let tried = self
            .on_sites(volume, fs::StoreRanges::NAME, |target| async move {
                self.send_pieces_to(&target, sending, pieces, expected).await
            })
            .await;
        let error = match tried.result {
            Ok(answered) => {
                let reply = &answered.value;
                self.promises.refresh(volume, vnode, &answered.change(&reply.status, &reply.sync));
                let mut content = data.content();
                for piece in pieces {
                    add(&self.counters.bytes_stored, piece.range.end - piece.range.start);
                    content.stored(piece, reply.status.data_version, reply.status.length);
                    sending.note_sums(piece);
                }
                return Ok(Sent::All);
            }
            Err(error) => error,
        };
        match error.kind {
            ErrorKind::NotSupported => Ok(Sent::OldServer),
            ErrorKind::WouldBlock => {
                let status = self.ask_status(vnode, volume).await?;
                // An earlier attempt may have been carried out: then the other version is ours.
                let is_ours =
                    tried.unsure && self.was_carried_out(vnode, volume, data, &status, expected).await?;
                Ok(if is_ours { Sent::All } else { Sent::OtherVersion })
            }
            _ => Err(error.of(sending.fid())),
        }
    }

    async fn send_pieces_to(
        &self,
        target: &Target,
        sending: &Sending<'_>,
        pieces: &[Piece],
        expected: DataVersion,
    ) -> std::result::Result<StatusReply, CallError> {
        let with_bytes = || pieces.iter().filter(|piece| !piece.range.is_empty());
        let request = fs::StoreRanges {
            fid: sending.fid(),
            status: sending.status,
            expected,
            file_length: pieces.first().map_or(0, |piece| piece.file_length),
            grown_to: pieces.last().map_or(0, |piece| piece.range.end),
            ranges: with_bytes().count() as u32,
        };
        let mut head = Vec::with_capacity(pieces.len() * fs::STORE_RANGE_LEN);
        for piece in with_bytes() {
            piece.range.start.encode(&mut head);
            (piece.range.end - piece.range.start).encode(&mut head);
        }
        let mut call = target.connection.open(&request).await?;
        let sent = async move {
            if !head.is_empty() {
                call.write(Bytes::from(head)).await?;
            }
            for piece in with_bytes() {
                call = self.send_bytes(call, sending, piece).await?;
            }
            call.finish_request()?;
            call.finish::<fs::StoreRanges>().await
        };
        let reply = sent.await;
        if let Err(CallError::Abort(AbortCode::RXGEN_OPCODE)) = reply {
            target.server.single_ranges_only.store(true, Ordering::Relaxed);
        }
        reply
    }
}
