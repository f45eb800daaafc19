//! Dumps through the tool by a server's data path. What it does not do is done by a call.

use std::net::IpAddr;

use afs_datapath::MINIMUM_SIZE;
use afs_datapath::session::{Error, Leaving};
use afs_datapath::volume_stream::GrantedStream;
use afs_rpc::{CallError, ClientCall};
use afs_wire::error::AbortCode;
use afs_wire::rpc::Request;
use afs_wire::vol::{DumpByPath, RestoreByPath, STREAM_GRANT_MAX, StreamGrant};
use afs_wire::xdr::Decode;

use super::stream::{Reading, Writing};
use super::transaction::Transaction;
use crate::error::AdminResult;
use crate::{Admin, PathUse};

impl Admin {
    /// Reads a dump by the data path. Whether all of it was read; if not, what was read is in `reading`.
    pub(super) async fn read_by_path(
        &self,
        held: &Transaction,
        request: &DumpByPath,
        reading: &mut Reading<'_>,
    ) -> AdminResult<bool> {
        let Some((mut call, granted)) = self.granted(held, request, reading.size).await else {
            return Ok(false);
        };
        let mut arriving = match granted.receive(self.env()).await {
            Ok(arriving) => arriving,
            Err(error) => return Ok(unused(held, &error)),
        };
        loop {
            match arriving.next().await {
                Ok(Some(piece)) => reading.take(piece).await?,
                Ok(None) => break,
                Err(error) => return Ok(unused(held, &error)),
            }
        }
        // The stream is whole; the call says whether the dump is.
        call.read_to_end(0).await.map_err(|error| reading.failed(error))?;
        Ok(true)
    }

    /// Writes a dump by the data path. Whether it is restored; if not, the source is at its beginning.
    pub(super) async fn write_by_path(
        &self,
        held: &Transaction,
        request: &RestoreByPath,
        writing: &mut Writing<'_>,
    ) -> AdminResult<bool> {
        if !writing.rewind().await? {
            return Ok(false);
        }
        let Some((mut call, granted)) = self.granted(held, request, writing.size).await else {
            return Ok(false);
        };
        let leaving = match granted.send(self.env()).await {
            Ok(leaving) => leaving,
            Err(error) => return Ok(unused(held, &error)),
        };
        let sent = send(leaving, writing).await?;
        // The call tells what became of the dump, and ends when the server has let go of it.
        match (call.read_to_end(0).await, sent) {
            (Ok(_), _) => Ok(true),
            (Err(CallError::Abort(AbortCode::VOLSERREAD_DUMPERROR)), Err(error)) => {
                writing.rewind().await?;
                Ok(unused(held, &error))
            }
            (Err(error), _) => Err(writing.failed(error)),
        }
    }

    /// A stream that the server grants for a dump of that length, if it is known, and the call that lasts as long. None is asked for
    /// if the dump is too short for any server; the least size of this one comes with its grant.
    async fn granted<R: Request>(
        &self,
        held: &Transaction,
        request: &R,
        size: Option<u64>,
    ) -> Option<(ClientCall, GrantedStream)> {
        let is_below = |least| size.is_some_and(|size| size < least);
        if self.path() == PathUse::Off || is_below(MINIMUM_SIZE) {
            return None;
        }
        let server = held.place.server;
        let mut call = held.server().open(request).await.ok()?;
        call.finish_request().ok()?;
        let bytes = call.read_opaque(STREAM_GRANT_MAX).await.ok()?;
        let grant = StreamGrant::from_bytes(&bytes).ok()?;
        let granted = GrantedStream::new(&grant, IpAddr::V4(server), self.path() == PathUse::Clear)?;
        (!is_below(granted.minimum_size)).then_some((call, granted))
    }
}

/// An error of the source ends the restore; one of the stream is returned.
async fn send(mut leaving: Leaving, writing: &mut Writing<'_>) -> AdminResult<Result<(), Error>> {
    while let Some(piece) = writing.next().await? {
        let len = piece.len();
        if let Err(error) = leaving.put(piece).await {
            return Ok(Err(error));
        }
        writing.sent(len);
    }
    Ok(leaving.finish().await.map(drop))
}

/// The rest is done by a call.
fn unused(held: &Transaction, error: &Error) -> bool {
    tracing::info!(server = %held.place.server, %error, "no data path; the dump goes by a call");
    false
}
