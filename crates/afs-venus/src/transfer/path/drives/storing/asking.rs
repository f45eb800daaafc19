//! GetAnyRoom, or GetPlacedRoom or GetRoom of an older server: a room for one store, at drives that are connected.

use std::sync::Arc;

use afs_datapath::capability::Access;
use afs_datapath::frame::{COLLECTING_VERSION, STAGING_VERSION};
use afs_datapath::session::Handle;
use afs_rpc::{CallError, EnvExt};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs;
use afs_wire::rpc::Request;
use afs_wire::xdr::{BoundedVec, Fixed};

use super::super::super::capabilities::Given;
use super::super::super::fallback::{Ended, Fallback};
use super::super::super::link::Link;
use super::super::super::opening::CALL_MAX;
use super::super::server_drives::ServerDrives;
use super::rooms::{Key, Why};
use super::told::{DriveTold, Form, RoomTold, Rounds};
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
    /// How it is committed.
    pub form: Form,
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
        request: &fs::GetPlacedRoom,
    ) -> Result<Room, Ended> {
        if self.server.has_no_rooms(self.now()) {
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
        if self.server.keeps_rooms(self.now()) {
            return;
        }
        self.common.counters.call(fs::EndRoom::NAME);
        let reset = self.server.reset.get();
        match self.common.env.timeout(CALL_MAX, target.connection.call(&fs::EndRoom { room })).await {
            Ok(Err(CallError::Abort(AbortCode::RXGEN_OPCODE))) => {
                self.server.no_room_ends.note(self.now(), reset);
            }
            Ok(Ok(_)) => {}
            _ => tracing::debug!("a room at a drive could not be given back; it ends by itself"),
        }
    }

    /// `None` if turns are to be waited for.
    async fn enter(self: &Arc<Self>, key: Key, told: RoomTold, turns: Turns) -> Result<Option<Room>, Ended> {
        let RoomTold { drives, rounds, number, form } = told;
        let offers: Vec<_> = drives.iter().map(|told| told.offer.clone()).collect();
        let links = self.links(&offers).await;
        self.rooms.lock().given(key, offers, self.now());
        let links = links?;
        let Some(turns) = self.turns_in_room(turns, &links) else { return Ok(None) };
        let mut room = Room { drives: Vec::new(), rounds, number, form, _turns: turns };
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
        let version = if is_commanded { COLLECTING_VERSION } else { STAGING_VERSION };
        if link.session.version() < version {
            return Err(Fallback::NoRoom);
        }
        let given = Arc::new(told.given);
        match link.handle(&given, self.now()) {
            Ok(handle) => Ok(AtDrive { link, handle, given, drive: told.drive, is_commanded }),
            Err(error) => Err(self.failed(&link, &given, Fallback::of(&error))),
        }
    }

    async fn get_room(
        &self,
        target: &Target,
        key: Key,
        request: &fs::GetPlacedRoom,
    ) -> Result<RoomTold, Ended> {
        let (asked, reset) = (self.now(), self.server.reset.get());
        let why = match self.common.env.timeout(CALL_MAX, self.ask(target, request)).await {
            Ok(Ok((reply, form))) => match self.told(&reply, form, target, (asked, request.bytes)) {
                Some(told) => return Ok(told),
                None => {
                    self.give_back(target, reply.room).await;
                    Why::Failed
                }
            },
            Ok(Err(CallError::Abort(AbortCode::RXGEN_OPCODE))) => {
                self.server.no_rooms.note(self.now(), reset);
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

    /// Asks by the present call, or a server that does not know it by the one for a room whose chunks are not commanded, or by the one for
    /// a room at one drive.
    async fn ask(
        &self,
        target: &Target,
        request: &fs::GetPlacedRoom,
    ) -> Result<(fs::GetPlacedRoomReply, Form), CallError> {
        let reset = self.server.reset.get();
        let fs::GetPlacedRoom { fid, bytes, length } = *request;
        if !self.server.commands_no_stores(self.now()) {
            self.common.counters.call(fs::GetAnyRoom::NAME);
            match target.connection.call(&fs::GetAnyRoom { fid, bytes, length }).await {
                Err(CallError::Abort(AbortCode::RXGEN_OPCODE)) => {
                    self.server.no_commanded_stores.note(self.now(), reset);
                }
                told => return Ok((told?, Form::Placed)),
            }
        }
        if !self.server.gives_rooms_at_one_drive(self.now()) {
            self.common.counters.call(fs::GetPlacedRoom::NAME);
            match target.connection.call(request).await {
                Err(CallError::Abort(AbortCode::RXGEN_OPCODE)) => {
                    self.server.single_rooms_only.note(self.now(), reset);
                }
                told => return Ok((told?, Form::Placed)),
            }
        }
        self.common.counters.call(fs::GetRoom::NAME);
        let reply = target.connection.call(&fs::GetRoom { fid, bytes, length }).await?;
        let rounds = BoundedVec::first_of([fs::RoomRound::first_of([0])]);
        let drives = BoundedVec::first_of([reply.drive]);
        Ok((fs::GetPlacedRoomReply { drives, rounds, room: reply.room }, Form::AtOne))
    }
}
