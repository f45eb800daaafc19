//! GetRoom and CommitChunks, calls of our own: clients stage the bytes of a store at a drive themselves, and one call makes them
//! a file's (docs/protocol/extensions.md "Rooms").
//!
//! A room is a ticket without bytes: it has the store's share of quota and space, an owner, and an end. What the drive holds for
//! it belongs to nobody before the commit has claimed it there.

use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::{Access, ByteRange, Capability, DriveKey, Group, Receipt, StagingTag};
use afs_datapath::session::Security;
use afs_drive::{BLOCK, ChunkRef, DriveId};
use afs_remote::DirectDrive;
use afs_rpc::{EnvExt, ServerCall, Table};
use afs_volume::{DataRoute, StagedIn, StagedParts};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, CommitPart, SetStatus};
use afs_wire::xdr::{Decode, Fixed};

use super::layout::{has_address, offer};
use super::object::Found;
use super::server::{CallContext, FileServer};
use super::storing::{self, Change, NO_TICKET, SHORT_DATA};
use super::ticket::{Owner, TicketId};
use crate::data_path::{HolderId, lifetime};

/// How long a room lasts, in seconds; shorter if the token of its holder expires before.
const LIFETIME: u64 = 300;
/// How long a commit is waited for after that.
const END_TIME: Duration = Duration::from_secs(10);
/// Time for the table of parts (at most 192 KiB) to arrive.
const TABLE_TIME: Duration = Duration::from_secs(60);

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    let table = super::call(table, |server: Arc<FileServer>, context, call: fs::GetRoom| async move {
        server.get_room(&context, call).await
    });
    let table = super::call(table, |server: Arc<FileServer>, context, call: fs::EndRoom| async move {
        server.end_room(&context, &call)
    });
    super::streamed(table, |server: Arc<FileServer>, context, call, request: fs::CommitChunks| async move {
        storing::answer(call, async move |call| server.commit_chunks(call, &context, request).await).await
    })
}

/// The drive of a commit, and the room there that the caller has for the file.
struct Room {
    direct: DirectDrive,
    key: Arc<DriveKey>,
    drive: DriveId,
    tag: StagingTag,
}

impl FileServer {
    /// Rights are decided again by the commit: until then nothing that the client does can be seen by anybody.
    async fn get_room(
        &self,
        context: &CallContext,
        call: fs::GetRoom,
    ) -> Result<fs::GetRoomReply, AbortCode> {
        let fs::GetRoom { fid, bytes, length } = call;
        if !(1..=fs::ROOM_BYTES_MAX).contains(&bytes) {
            return Err(Errno::EINVAL.to_uae());
        }
        if length > i64::MAX as u64 {
            return Err(Errno::EFBIG.to_uae());
        }
        let none = Errno::EOPNOTSUPP.to_uae();
        let found = self.find_to_store(context, fid, &SetStatus::default()).await?;
        let direct = self.drive_to_stage(&found).await.ok_or(none)?;
        let sealing = direct.sealing().await.ok_or(none)?;
        let seconds = lifetime(&context.identity, self.env.wall().secs).min(LIFETIME);
        if seconds == 0 {
            return Err(Errno::EACCES.to_uae());
        }
        let holder = self.data_path.holders().enter(context, u128::from_le_bytes(self.env.random_bytes()));
        let rests = Duration::from_secs(seconds) + END_TIME;
        let room = self.begin_room(context, found, (holder.id, rests), call)?;
        let (options, key) = (direct.options(), &sealing.key);
        let tag = key.staging_tag(u128::from_be_bytes(room.to_bytes()), fid, holder.id);
        let capability = Capability {
            drive: key.drive(),
            epoch: key.epoch(),
            group: Group::Staged(options.store, tag),
            access: Access::WRITE,
            range: ByteRange::new(0, bytes).ok_or(none)?,
            expires: self.env.wall().secs + seconds,
            generation: sealing.generation,
            holder: holder.id,
        };
        let drive = offer(options, &sealing, capability, seconds).ok_or(none)?;
        Ok(fs::GetRoomReply { drive, room: Fixed(room.to_bytes()) })
    }

    /// The drive for new data of a volume whose setting permits it.
    async fn drive_to_stage(&self, found: &Found) -> Option<DirectDrive> {
        if found.header.route != DataRoute::Drives {
            return None;
        }
        let drive = found.served.volume.staging_drive().await?;
        let direct = self.partitions.direct(found.served.site.partition, drive)?;
        let is_open = self.guard.policy().is_open_to_all(found.header.name.as_str());
        let is_usable = direct.options().security != Security::Clear || is_open;
        (is_usable && has_address(direct.options())).then_some(direct)
    }

    /// A ticket with the quota and the space of a store that is to come.
    fn begin_room(
        &self,
        context: &CallContext,
        found: Found,
        (holder, rests): (HolderId, Duration),
        call: fs::GetRoom,
    ) -> Result<TicketId, AbortCode> {
        let fs::GetRoom { fid, bytes, length } = call;
        let kept = found.record.length.min(length);
        // Counts as much as the file grows by at most: what is not staged are zeros.
        let ranges = vec![(kept, bytes.min(length - kept))];
        let status = SetStatus::default();
        let change = Change { fid, status, file_length: u64::MAX, ranges, grown_to: length, expected: None };
        let (owner, served) = (Owner::Holder(holder), found.served.clone());
        let room = self.begin_store(&owner, context.address, found.target(), change)?;
        let Some(mut ticket) = self.tickets.take(room, &owner) else { return Err(NO_TICKET.to_uae()) };
        ticket.rests = Some(rests);
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

    async fn commit_chunks(
        self: &Arc<Self>,
        call: &mut ServerCall,
        context: &Arc<CallContext>,
        request: fs::CommitChunks,
    ) -> Result<fs::StatusReply, AbortCode> {
        let parts = self.take_parts(call, &request).await?;
        let found = self.find_to_store(context, request.fid, &request.status).await?;
        let expected = (request.expected != fs::ANY_VERSION).then_some(request.expected);
        if expected.is_some_and(|expected| expected != found.record.data_version) {
            return Err(Errno::EAGAIN.to_uae());
        }
        let committed = self.commit_parts(context, &request, found, parts).await;
        if committed.as_ref().err() == Some(&NO_TICKET.to_uae()) {
            let count = self.statistics.count_refused_commit();
            tracing::info!(peer = %context.peer, fid = %request.fid, count, "a commit of chunks was refused");
        }
        committed
    }

    /// The table of parts, and whether what it says can be.
    async fn take_parts(
        &self,
        call: &mut ServerCall,
        request: &fs::CommitChunks,
    ) -> Result<Parts, AbortCode> {
        let count = usize::try_from(request.parts).unwrap_or(usize::MAX);
        if count > fs::COMMIT_PARTS_MAX {
            return Err(Errno::EINVAL.to_uae());
        }
        if request.file_length.max(request.grown_to) > i64::MAX as u64 {
            return Err(Errno::EFBIG.to_uae());
        }
        let table = self.env.timeout(TABLE_TIME, call.read_exact(count * CommitPart::WIRE_LEN)).await;
        let table = table.map_err(|_| SHORT_DATA)?.map_err(|_| SHORT_DATA)?;
        decode(&table)
    }

    async fn commit_parts(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        request: &fs::CommitChunks,
        found: Found,
        parts: Parts,
    ) -> Result<fs::StatusReply, AbortCode> {
        let no_room = NO_TICKET.to_uae();
        let fid = request.fid;
        let holder = self.data_path.holders().of(context).ok_or(no_room)?;
        let room = self.room_of(request, &found, holder).ok_or(no_room)?;
        let store = room.direct.options().store;
        let receipt = |chunk| room.key.receipt(store, room.tag, request.run, chunk);
        if !parts.have_receipts(receipt) {
            return Err(no_room);
        }
        let id = TicketId::from_bytes(request.room.0);
        let mut ticket = self.tickets.take(id, &Owner::Holder(holder)).ok_or(no_room)?;
        if ticket.change.fid != fid {
            return Err(no_room);
        }
        let from = StagedIn { drive: room.drive, run: request.run, tag: room.tag.0 };
        let bytes = parts.staged.bytes();
        let claimed = ticket.served.volume.claim(parts.staged, from).await;
        let mut data = claimed.map_err(|error| self.code(fid, &error))?;
        data.grow_to(request.grown_to).map_err(|error| self.code(fid, &error))?;
        self.statistics.count_stored_data(bytes);
        ticket.change.status = request.status;
        ticket.change.file_length = request.file_length;
        ticket.change.expected = (request.expected != fs::ANY_VERSION).then_some(request.expected);
        ticket.data = Some(data);
        self.commit_change(context, *ticket).await
    }

    /// The room that a commit names, as the drive knows it: of another caller, or for another file, it would have another tag.
    fn room_of(&self, request: &fs::CommitChunks, found: &Found, holder: HolderId) -> Option<Room> {
        let partition = found.served.site.partition;
        let drive = self.partitions.store(partition)?.drive_in_use();
        let direct = self.partitions.direct(partition, drive)?;
        let key = direct.options().keys.present();
        if key.drive().0.to_be_bytes() != request.drive.0 {
            return None;
        }
        let tag = key.staging_tag(u128::from_be_bytes(request.room.0), request.fid, holder);
        Some(Room { direct, key, drive, tag })
    }
}

/// What a table of parts says.
#[derive(Debug)]
struct Parts {
    staged: StagedParts,
    receipts: Vec<Receipt>,
}

impl Parts {
    /// Whether the receipt of each chunk is the right one.
    fn have_receipts(&self, right: impl Fn(ChunkRef) -> Receipt) -> bool {
        let mut chunks = self.staged.iter().map(|(_, chunk)| *chunk).zip(&self.receipts);
        chunks.all(|(chunk, receipt)| right(chunk).equals(receipt))
    }
}

fn decode(table: &[u8]) -> Result<Parts, AbortCode> {
    let (mut staged, mut receipts) = (Vec::new(), Vec::new());
    for part in table.chunks(CommitPart::WIRE_LEN) {
        let part = CommitPart::from_bytes(part).map_err(|_| AbortCode::RXGEN_SS_UNMARSHAL)?;
        let chunk = ChunkRef::from_bytes(&part.chunk.0).ok_or(AbortCode::RXGEN_SS_UNMARSHAL)?;
        staged.push((part.position, chunk));
        receipts.push(Receipt(part.receipt.0));
    }
    Ok(Parts { staged: StagedParts::new(staged)?, receipts })
}
