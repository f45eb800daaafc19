//! Stores at the drives themselves, in front of those at the file server (docs/protocol/extensions.md "Rooms").
//!
//! The file server gives a room at the drives for new data; the bytes are staged there as chunks, each at all drives that are to have
//! it, and one call makes them the file's. Where the volume's transfers are commanded, the file server is asked for a command for each
//! chunk.
//! Whatever fails before that call is made, or is refused for the room's sake, the file server stores the bytes instead, from
//! the first one on: nothing of the file has changed. Where the reply of that call is lost the change may have been made, as with
//! every store, and nothing is stored by another way.

mod asking;
mod commits;
mod parts;
mod rooms;
mod staging;
mod told;
mod turns;

use std::sync::Arc;
use std::time::Duration;

use afs_rpc::future::join_all;
use afs_rpc::{CallError, EnvExt};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, CommitPlace, StatusReply};
use afs_wire::rpc::Request;
use bytes::Bytes;

use self::asking::{AtDrive, Room};
pub(super) use self::rooms::Rooms;
use self::rooms::{Key, Why};
use super::super::fallback::{Ended, Fallback};
use super::server_drives::ServerDrives;
use crate::calls::Target;
use crate::transfer::{Source, StoreRequest};

/// How long a drive may take to forget what was staged. What it is not told it forgets after its time.
const FORGET_MAX: Duration = Duration::from_secs(10);

impl ServerDrives {
    /// Changes a file by the bytes of a source. An error of Commit is that of the store, unless it is for the room's sake.
    pub(crate) async fn store(
        self: &Arc<Self>,
        target: &Target,
        change: &StoreRequest<'_>,
        source: &mut dyn Source,
    ) -> Result<StatusReply, Ended> {
        let stored = self.try_store(target, change, source).await;
        if let Err(Ended::Fallback(why)) = &stored {
            self.fallback(*why);
        }
        stored
    }

    async fn try_store(
        self: &Arc<Self>,
        target: &Target,
        change: &StoreRequest<'_>,
        source: &mut dyn Source,
    ) -> Result<StatusReply, Ended> {
        let (fid, bytes) = (change.fid, parts::space(change).ok_or(Ended::NoPath)?);
        let key = (target.token, fid.volume);
        let length = change.pieces.last().map_or(0, |piece| piece.range.end.max(piece.file_length));
        let room = self.room(target, key, &fs::GetRoom { fid, bytes, length }).await?;
        let stored = match self.stage_all(target, &room, change, source).await {
            Ok(places) => self.commit(target, (change, &room), places).await,
            Err(why) => Err((why, true)),
        };
        room.withdraw();
        let (why, is_unclaimed) = match stored {
            Ok(reply) => return Ok(reply),
            Err(failed) => failed,
        };
        self.note_failure(key, &why);
        if is_unclaimed {
            self.give_back(target, room.number).await;
            self.forget(room);
        }
        Err(why)
    }

    /// Fails with whether nothing was done with the chunks.
    async fn commit(
        &self,
        target: &Target,
        (change, room): (&StoreRequest<'_>, &Room),
        places: Vec<CommitPlace>,
    ) -> Result<StatusReply, (Ended, bool)> {
        let (request, tables) = commits::commit(change, room, &places);
        match self.send(target, &request, tables).await {
            Err(CallError::Abort(code)) if is_of_room(code) => Err((Ended::Fallback(Fallback::Ticket), true)),
            done => done.map_err(|error| (Ended::Failed(error), false)),
        }
    }

    async fn send(
        &self,
        target: &Target,
        request: &fs::Commit,
        tables: Vec<u8>,
    ) -> Result<StatusReply, CallError> {
        self.common.counters.call(fs::Commit::NAME);
        let mut call = target.connection.open(request).await?;
        call.write(Bytes::from(tables)).await?;
        call.finish_request()?;
        call.finish::<fs::Commit>().await
    }

    fn note_failure(&self, key: Key, why: &Ended) {
        if matches!(why, Ended::Fallback(_)) {
            self.rooms.lock().none(key, Why::Failed, self.now());
        }
    }

    /// Has the drives forget what was staged. Nobody waits for it.
    fn forget(&self, room: Room) {
        let env = self.common.env.clone();
        self.common.env.spawn(Box::pin(async move {
            let forget = async |at: &AtDrive| {
                let forgotten = env.timeout(FORGET_MAX, at.link.session.forget_staged(&at.handle)).await;
                if !matches!(forgotten, Ok(Ok(()))) {
                    tracing::debug!("a drive was not told of chunks that nobody will claim");
                }
            };
            join_all(room.drives.iter().map(forget)).await;
        }));
    }
}

/// Whether the file server says that it does not take what was staged in this room. The same bytes may be stored by another way.
fn is_of_room(code: AbortCode) -> bool {
    [Errno::ESTALE, Errno::EOPNOTSUPP, Errno::EINVAL].iter().any(|errno| code == errno.to_uae())
        || code == AbortCode::RXGEN_OPCODE
        || code == AbortCode::RXGEN_SS_UNMARSHAL
}
