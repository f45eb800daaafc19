//! GetRoom and EndRoom, calls of our own: clients stage the bytes of a store at drives themselves
//! (docs/protocol/extensions.md "Rooms").
//!
//! A room is a ticket without bytes: it has the store's share of quota and space, an owner, and an end. What the drives hold for
//! it belongs to nobody before a commit has claimed it there ([`super::room_commits`]).

use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::{Access, ByteRange, Capability, Group};
use afs_drive::{BLOCK, DriveId};
use afs_rpc::{EnvExt, Table};
use afs_volume::{DataRoute, StagingPlaces};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, LayoutDrive, SetStatus};
use afs_wire::xdr::Fixed;

use super::layout::{Sent, bounded, offer};
use super::object::Found;
use super::server::FileServer;
use super::store_change::Change;
use super::storing::NO_TICKET;
use super::ticket::{Owner, Staging, TicketId};
use crate::call_context::CallContext;
use crate::data_path::{HolderId, lifetime};

/// How long a room lasts, in seconds; shorter if the token of its holder expires before.
const LIFETIME: u64 = 300;
/// How long a commit is waited for after that.
const END_TIME: Duration = Duration::from_secs(10);

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    let table = super::call(table, |server: Arc<FileServer>, context, call: fs::GetRoom| async move {
        server.get_room(&context, &call).await
    });
    super::call(table, |server: Arc<FileServer>, context, call: fs::EndRoom| async move {
        server.end_room(&context, &call)
    })
}

/// What the capabilities of a room permit, where a volume's setting permits rooms.
fn access(route: DataRoute) -> Option<Access> {
    match route {
        DataRoute::Drives => Some(Access::WRITE),
        DataRoute::Commanded => Some(Access::WRITE | Access::COMMANDED),
        DataRoute::Calls | DataRoute::Server => None,
    }
}

/// A room at the drives to which a volume's new data go.
struct Given {
    drives: Vec<LayoutDrive>,
    places: StagingPlaces,
    room: TicketId,
}

impl FileServer {
    async fn get_room(
        &self,
        context: &CallContext,
        call: &fs::GetRoom,
    ) -> Result<fs::GetRoomReply, AbortCode> {
        let Given { drives, places, room } = self.give_room(context, call).await?;
        let ids = drives_of(&places);
        let place = |id: &DriveId| ids.iter().position(|listed| listed == id).unwrap_or_default() as u32;
        let round = |round: &Vec<DriveId>| bounded(round.iter().map(place).collect());
        let rounds = places.rounds.iter().map(round).collect::<Result<Vec<_>, _>>()?;
        let (drives, rounds) = (bounded(drives)?, bounded(rounds)?);
        Ok(fs::GetRoomReply { drives, rounds, room: Fixed(room.to_bytes()) })
    }

    /// Rights are decided again by the commit: until then nothing that the client does can be seen by anybody.
    async fn give_room(&self, context: &CallContext, call: &fs::GetRoom) -> Result<Given, AbortCode> {
        if !(1..=fs::ROOM_BYTES_MAX).contains(&call.bytes) {
            return Err(Errno::EINVAL.to_uae());
        }
        if call.length > i64::MAX as u64 {
            return Err(Errno::EFBIG.to_uae());
        }
        let none = Errno::EOPNOTSUPP.to_uae();
        let found = self.find_to_store(context, call.fid, &SetStatus::default()).await?;
        let access = access(found.header.route).ok_or(none)?;
        let places = found.served.volume.staging_places().await.ok_or(none)?;
        let sents = self.drives_to_stage(&found, &places).await.ok_or(none)?;
        let seconds = lifetime(&context.identity, self.env.wall().secs).min(LIFETIME);
        if seconds == 0 {
            return Err(Errno::EACCES.to_uae());
        }
        let holder = self.data_path.holders().enter(context, u128::from_le_bytes(self.env.random_bytes()));
        let rests = Duration::from_secs(seconds) + END_TIME;
        let staging = Staging { rests, left_out: places.left_out.clone() };
        let room = self.begin_room(context, found, (holder.id, staging), call)?;
        let to = (room, holder.id, access);
        let drives = sents.iter().map(|sent| self.permit(sent, to, call, seconds));
        let drives = drives.collect::<Option<_>>().ok_or(none)?;
        Ok(Given { drives, places, room })
    }

    /// All drives of a room, or none: what is to be at one to which clients are not sent, the file server
    /// writes.
    async fn drives_to_stage(&self, found: &Found, places: &StagingPlaces) -> Option<Vec<Sent>> {
        let (partition, mut sents) = (found.served.site.partition, Vec::new());
        for id in drives_of(places) {
            let direct = self.partitions.direct(partition, id)?;
            let sent = self.sent_to(found, direct, sents.len() as u32).await?;
            sents.push(sent);
        }
        Some(sents)
    }

    /// A capability to stage the bytes of a room at a drive.
    fn permit(
        &self,
        Sent { direct, sealing, .. }: &Sent,
        (room, holder, access): (TicketId, HolderId, Access),
        call: &fs::GetRoom,
        seconds: u64,
    ) -> Option<LayoutDrive> {
        let (options, key) = (direct.options(), &sealing.key);
        let tag = key.staging_tag(u128::from_be_bytes(room.to_bytes()), call.fid, holder);
        let capability = Capability {
            drive: key.drive(),
            epoch: key.epoch(),
            group: Group::Staged(options.store, tag),
            access,
            range: ByteRange::new(0, call.bytes)?,
            expires: self.env.wall().secs + seconds,
            generation: sealing.generation,
            holder,
        };
        offer(options, sealing, capability, seconds)
    }

    /// A ticket with the quota and the space of a store that is to come.
    fn begin_room(
        &self,
        context: &CallContext,
        found: Found,
        (holder, staging): (HolderId, Staging),
        call: &fs::GetRoom,
    ) -> Result<TicketId, AbortCode> {
        let fs::GetRoom { fid, bytes, length } = *call;
        let kept = found.record.length.min(length);
        // Counts as much as the file grows by at most: what is not staged are zeros.
        let ranges = vec![(kept, bytes.min(length - kept))];
        let status = SetStatus::default();
        let change = Change { fid, status, file_length: u64::MAX, ranges, grown_to: length, expected: None };
        let (owner, served) = (Owner::Holder(holder), found.served.clone());
        let room = self.begin_store(&owner, context.address, found.target(), change)?;
        let Some(mut ticket) = self.tickets.take(room, &owner) else { return Err(NO_TICKET.to_uae()) };
        ticket.staging = Some(staging);
        let staged = ticket.under_way.came(bytes.next_multiple_of(BLOCK));
        self.check_under_way(&served, staged, &ticket.under_way)?;
        self.tickets.put(room, owner, ticket);
        Ok(room)
    }

    /// The room counts among its caller's until its time all the same, under a number that no client knows: its capability lasts as
    /// long, and the number of rooms bounds what can be staged.
    fn end_room(&self, context: &CallContext, call: &fs::EndRoom) -> Result<(), AbortCode> {
        let no_room = NO_TICKET.to_uae();
        let owner = Owner::Holder(self.data_path.holders().of(context).ok_or(no_room)?);
        let mut ticket = self.tickets.take(TicketId::from_bytes(call.room.0), &owner).ok_or(no_room)?;
        ticket.under_way.give_back_room();
        self.tickets.open(owner, ticket);
        Ok(())
    }
}

/// The drives of a room, each once, in the order in which rounds name them.
fn drives_of(places: &StagingPlaces) -> Vec<DriveId> {
    let mut ids: Vec<DriveId> = Vec::new();
    for id in places.rounds.iter().flatten() {
        if !ids.contains(id) {
            ids.push(*id);
        }
    }
    ids
}
