//! Atomic store of all dirty ranges of a file.
//!
//! The call names the version on which the local changes are based; a server that has another one changes nothing.
//! Parts of two versions are therefore never mixed unnoticed, and other clients never see some of the ranges without
//! the others.

use afs_wire::ids::DataVersion;

use crate::counters::add;
use crate::data::Piece;
use crate::error::{ErrorKind, Result};
use crate::transfer::PIECES_MAX;
use crate::venus::Venus;
use crate::venus::sending::{Sending, Sent};

impl Venus {
    /// Sends all pieces, as many per call as it takes, for the version `expected`. Nothing to send is success.
    pub(super) async fn send_as_one(
        &self,
        sending: &Sending<'_>,
        pieces: &[Piece],
        mut expected: DataVersion,
        any: &mut bool,
    ) -> Result<Sent> {
        for pieces in pieces.chunks(PIECES_MAX) {
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
        let outcome = self.send(sending, pieces, Some(expected)).await;
        let error = match outcome.result {
            Ok(answered) => {
                let reply = &answered.value;
                self.promises.record_change(volume, vnode, &answered.change(&reply.status, &reply.sync));
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
                let status = self.fetch_status(vnode, volume).await?;
                // An earlier attempt may have been executed: then the other version is its result.
                let is_ours = outcome.maybe_executed
                    && self.was_carried_out(vnode, volume, data, &status, expected).await?;
                Ok(if is_ours { Sent::All } else { Sent::OtherVersion })
            }
            _ => Err(error.of(sending.fid())),
        }
    }
}
