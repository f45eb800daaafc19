//! Store over a connection: all pieces to a ticket, then Commit, which makes one version of them.

use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::{ByteRange, TicketId};
use afs_datapath::session::StoreDescription;
use afs_rpc::CallError;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, StatusReply};
use afs_wire::rpc::Request;
use afs_wire::xdr::Fixed;

use super::capabilities::{Need, Use};
use super::fallback::{Ended, Fallback};
use super::server::ServerPath;
use super::steps::{Ready, Stop};
use crate::calls::Target;
use crate::data::Piece;
use crate::transfer::{Source, StoreRequest};

/// How long a store waits for a connection: it is all the file that would go by calls.
const LINK_WAIT: Duration = Duration::from_millis(500);

impl ServerPath {
    /// Changes a file by the bytes of a source. An error of Commit is that of the store, unless it is for the ticket's sake.
    pub(super) async fn store(
        self: &Arc<Self>,
        target: &Target,
        change: &StoreRequest<'_>,
        bytes: u64,
        source: &mut dyn Source,
    ) -> Result<StatusReply, Ended> {
        let StoreRequest { fid, directory, .. } = *change;
        let need = Need { token: target.token, fid, directory, used: Use::Write };
        let description = description(change).ok_or(Ended::NoPath)?;
        let ready = self.prepare(target, &need, bytes, LINK_WAIT).await?;
        let ticket = self.run(&ready, &need, bytes, leave(&ready, change, &description, source)).await?;
        match self.commit(target, change, ticket).await {
            Err(CallError::Abort(code)) if is_of_ticket(code) => {
                self.failed(&ready.link, Fallback::Ticket);
                Err(Ended::Fallback(Fallback::Ticket))
            }
            done => done.map_err(Ended::Failed),
        }
    }

    async fn commit(
        &self,
        target: &Target,
        change: &StoreRequest<'_>,
        ticket: TicketId,
    ) -> Result<StatusReply, CallError> {
        self.common.counters.call(fs::Commit::NAME);
        target.connection.call(&request(change, Fixed(ticket.0.to_be_bytes()), [0, 0])).await
    }
}

/// The call that makes a file's what was staged under a number, with tables of so many drives and places.
pub(super) fn request(
    change: &StoreRequest<'_>,
    staged: Fixed<16>,
    [drives, places]: [u32; 2],
) -> fs::Commit {
    fs::Commit {
        fid: change.fid,
        status: change.status,
        expected: change.expected.unwrap_or(fs::ANY_VERSION),
        file_length: file_length(change),
        grown_to: change.pieces.last().map_or(0, |piece| piece.range.end),
        staged,
        drives,
        places,
    }
}

/// Whether the file server says that it does not have the ticket, or does not know the call. A file that is gone gives another
/// code, and the same one by calls.
fn is_of_ticket(code: AbortCode) -> bool {
    code == Errno::ESTALE.to_uae() || code == AbortCode::RXGEN_OPCODE
}

/// Length to which a longer file is truncated first.
fn file_length(change: &StoreRequest<'_>) -> u64 {
    change.pieces.first().map_or(0, |piece| piece.file_length)
}

fn with_bytes<'a>(change: &StoreRequest<'a>) -> impl Iterator<Item = &'a Piece> + use<'a> {
    change.pieces.iter().filter(|piece| !piece.range.is_empty())
}

fn description(change: &StoreRequest<'_>) -> Option<StoreDescription> {
    let ranges = with_bytes(change).map(|piece| ByteRange::new(piece.range.start, piece.range.end));
    StoreDescription::new(change.fid, file_length(change), ranges.collect::<Option<Vec<_>>>()?)
}

async fn leave(
    ready: &Ready,
    change: &StoreRequest<'_>,
    description: &StoreDescription,
    source: &mut dyn Source,
) -> Result<TicketId, Stop> {
    let mut leaving = ready.link.session.store(&ready.handle, description).await?;
    for piece in with_bytes(change) {
        let mut at = piece.range.start;
        while at < piece.range.end {
            let bytes = source.next(piece, at).await.map_err(|_| Stop::Here)?;
            at += bytes.len() as u64;
            leaving.put(bytes).await?;
        }
    }
    Ok(leaving.finish().await?)
}
