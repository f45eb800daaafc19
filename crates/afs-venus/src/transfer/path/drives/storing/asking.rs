//! GetRoom: a room for one store, at a drive that is connected.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_datapath::capability::Group;
use afs_datapath::frame::STAGING_VERSION;
use afs_datapath::session::Handle;
use afs_rpc::sync::OwnedSemaphorePermit;
use afs_rpc::{CallError, EnvExt};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs;
use afs_wire::rpc::Request;
use afs_wire::xdr::Fixed;

use super::super::super::capabilities::{Given, Use};
use super::super::super::fallback::Fallback;
use super::super::super::grants::given;
use super::super::super::link::Link;
use super::super::super::offer::Offer;
use super::super::super::opening::CALL_MAX;
use super::super::super::steps::Ended;
use super::super::server_drives::ServerDrives;
use super::rooms::{Before, Key, Why};
use crate::calls::Target;

/// Where a store is staged.
pub(super) struct Room {
    pub link: Arc<Link>,
    pub handle: Handle,
    pub given: Arc<Given>,
    /// Id of the drive, and number of the room, as the commit names them.
    pub drive: Fixed<16>,
    pub number: Fixed<16>,
    _permit: OwnedSemaphorePermit,
}

/// A room as the file server told it.
struct Told {
    offer: Offer,
    given: Given,
    drive: Fixed<16>,
    number: Fixed<16>,
}

impl ServerDrives {
    /// A room for a store. None is asked for while the drive at which the last one was is not connected: nothing waits for a connection,
    /// and what is asked for is reserved.
    pub(super) async fn room(
        self: &Arc<Self>,
        target: &Target,
        key: Key,
        request: &fs::GetRoom,
    ) -> Result<Room, Ended> {
        if self.server.has_no_rooms(self.now()) {
            return Err(Ended::NoPath);
        }
        let before = self.rooms.lock().before(key, self.now());
        match before {
            Before::None => return Err(Ended::NoPath),
            Before::At(offer) => drop(self.link(&offer).map_err(Ended::Fallback)?),
            Before::Nothing => {}
        }
        let told = self.get_room(target, key, request).await?;
        self.rooms.lock().given(key, &told.offer);
        let number = told.number;
        match self.enter(told) {
            Ok(room) => Ok(room),
            Err(why) => {
                self.give_back(target, number).await;
                Err(Ended::Fallback(why))
            }
        }
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

    fn enter(self: &Arc<Self>, told: Told) -> Result<Room, Fallback> {
        let link = self.link(&told.offer)?;
        if link.session.version() < STAGING_VERSION {
            return Err(Fallback::NoRoom);
        }
        let permit = link.begin(self.now()).ok_or(Fallback::Full)?;
        let given = Arc::new(told.given);
        match link.handle(&given, self.now()) {
            Ok(handle) => {
                let Told { drive, number, .. } = told;
                Ok(Room { link, handle, given, drive, number, _permit: permit })
            }
            Err(error) => Err(self.failed(&link, &given, Fallback::of(&error))),
        }
    }

    async fn get_room(&self, target: &Target, key: Key, request: &fs::GetRoom) -> Result<Told, Ended> {
        self.common.counters.call(fs::GetRoom::NAME);
        let (asked, reset) = (self.now(), self.server.reset.get());
        let why = match self.common.env.timeout(CALL_MAX, target.connection.call(request)).await {
            Ok(Ok(reply)) => match self.told(&reply, target, (asked, request.bytes)) {
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

    /// What a reply says; `None` for a drive that cannot be used from here, and what permits less than was asked for.
    fn told(
        &self,
        reply: &fs::GetRoomReply,
        target: &Target,
        (asked, bytes): (afs_rpc::Instant, u64),
    ) -> Option<Told> {
        let offer = Offer::of_layout(&reply.drive, target.address.peer.ip(), &self.common.config)?;
        let given = given(&reply.drive.capability, Use::Write, asked)?;
        let capability = &given.capability;
        let is_right = capability.drive == offer.drive
            && matches!(capability.group, Group::Staged(..))
            && capability.range.len() >= bytes;
        let number = self.given.fetch_add(1, Ordering::Relaxed);
        let (drive, given) = (reply.drive.drive, Given { number, ..given });
        is_right.then_some(Told { offer, given, drive, number: reply.room })
    }
}
