//! GetRoom: a room for one store, at drives that are connected.

use std::sync::Arc;

use afs_datapath::capability::Access;
use afs_datapath::session::Handle;
use afs_rpc::{CallError, EnvExt};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs;
use afs_wire::rpc::Request;
use afs_wire::xdr::Fixed;

use super::super::super::capabilities::Given;
use super::super::super::fallback::{Ended, Fallback};
use super::super::super::link::Link;
use super::super::super::opening::CALL_MAX;
use super::super::server_drives::ServerDrives;
use super::rooms::{Key, Why};
use super::told::{DriveTold, RoomTold, Rounds};
use super::turns::Turns;
use crate::calls::Target;

/// How often a store asks for a room, which it gives back to wait for its turns.
const ASKS_MAX: usize = 3;

/// Where a store is staged.
pub(super) struct Room {
    pub drives: Vec<AtDrive>,
    pub rounds: Rounds,
    /// Its number, as the commit names it.
    pub number: Fixed<16>,
    _turns: Turns,
}

/// A drive of a room.
pub(super) struct AtDrive {
    pub link: Arc<Link>,
    pub handle: Handle,
    pub given: Arc<Given>,
    /// Its id, as the commit names it.
    pub drive: Fixed<16>,
    /// Whether the file server has to command each chunk.
    pub is_commanded: bool,
}

impl Room {
    /// The capabilities are used no more.
    pub fn withdraw(&self) {
        self.drives.iter().for_each(|at| at.link.withdraw(&at.given));
    }
}

impl ServerDrives {
    /// A room for a store, which has its turns at all drives of it.
    pub(super) async fn room(
        self: &Arc<Self>,
        target: &Target,
        key: Key,
        request: &fs::GetRoom,
    ) -> Result<Room, Ended> {
        if !self.server.may_know_our_calls(self.now()) {
            return Err(Ended::NoPath);
        }
        for _ in 0..ASKS_MAX {
            let turns = self.turns_before(key, request.bytes).await?;
            let told = self.get_room(target, key, request).await?;
            let number = told.number;
            match self.enter(key, told, turns).await {
                Ok(Some(room)) => return Ok(room),
                Ok(None) => self.give_back(target, number).await,
                Err(why) => {
                    self.give_back(target, number).await;
                    return Err(why);
                }
            }
        }
        Err(Ended::Fallback(Fallback::Full))
    }

    /// Ends a room in which nothing will be committed. What it has reserved may be what the store by another way needs, which therefore
    /// begins after it.
    pub(super) async fn give_back(&self, target: &Target, room: Fixed<16>) {
        self.common.counters.call(fs::EndRoom::NAME);
        let ended = self.common.env.timeout(CALL_MAX, target.connection.call(&fs::EndRoom { room })).await;
        if !matches!(ended, Ok(Ok(_))) {
            tracing::debug!("a room at a drive could not be given back; it ends by itself");
        }
    }

    /// `None` if turns are to be waited for.
    async fn enter(self: &Arc<Self>, key: Key, told: RoomTold, turns: Turns) -> Result<Option<Room>, Ended> {
        let RoomTold { drives, rounds, number } = told;
        let offers: Vec<_> = drives.iter().map(|told| told.offer.clone()).collect();
        let links = self.links(&offers).await;
        self.rooms.lock().given(key, offers, self.now());
        let links = links?;
        let Some(turns) = self.turns_in_room(turns, &links) else { return Ok(None) };
        let mut room = Room { drives: Vec::new(), rounds, number, _turns: turns };
        for (told, link) in drives.into_iter().zip(links) {
            match self.enter_at(told, link) {
                Ok(at) => room.drives.push(at),
                Err(why) => {
                    room.withdraw();
                    return Err(Ended::Fallback(why));
                }
            }
        }
        Ok(Some(room))
    }

    fn enter_at(self: &Arc<Self>, told: DriveTold, link: Arc<Link>) -> Result<AtDrive, Fallback> {
        let is_commanded = told.given.capability.access.permits(Access::COMMANDED);
        let given = Arc::new(told.given);
        match link.handle(&given, self.now()) {
            Ok(handle) => Ok(AtDrive { link, handle, given, drive: told.drive, is_commanded }),
            Err(error) => Err(self.failed(&link, &given, Fallback::of(&error))),
        }
    }

    async fn get_room(&self, target: &Target, key: Key, request: &fs::GetRoom) -> Result<RoomTold, Ended> {
        let (asked, reset) = (self.now(), self.server.reset.get());
        self.common.counters.call(fs::GetRoom::NAME);
        let why = match self.common.env.timeout(CALL_MAX, target.connection.call(request)).await {
            Ok(Ok(reply)) => match self.told(&reply, target, (asked, request.bytes)) {
                Some(told) => return Ok(told),
                None => {
                    self.give_back(target, reply.room).await;
                    Why::Failed
                }
            },
            Ok(Err(CallError::Abort(AbortCode::RXGEN_OPCODE))) => {
                self.server.no_calls_of_ours.note(self.now(), reset);
                return Err(Ended::NoPath);
            }
            Ok(Err(CallError::Abort(code))) if code == Errno::EOPNOTSUPP.to_uae() => Why::Volume,
            // Of this file, or of the quota: the store says it.
            Ok(Err(CallError::Abort(_))) => return Err(Ended::Fallback(Fallback::NoRoom)),
            _ => Why::Failed,
        };
        self.rooms.lock().none(key, why, self.now());
        Err(match why {
            Why::Volume => Ended::NoPath,
            Why::Failed => Ended::Fallback(Fallback::NoRoom),
        })
    }
}
