//! CommitRoom, a call of our own: what a client has staged in a room becomes a file's
//! (docs/protocol/extensions.md "Rooms").

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::{DriveKey, Receipt, StagingTag, StoreNumber};
use afs_drive::{ChunkRef, DriveId};
use afs_rpc::{EnvExt, ServerCall, Table};
use afs_volume::{NewData, StagedIn, StagedParts, StagedPlace};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, CommitDrive, CommitPlace};
use afs_wire::xdr::Decode;
use bytes::Bytes;

use super::object::Found;
use super::server::{CallContext, FileServer};
use super::storing::{self, NO_TICKET, SHORT_DATA};
use super::ticket::{Owner, Ticket, TicketId};
use crate::data_path::HolderId;

/// Time for the tables of drives and places (at most 624 KiB) to arrive.
const TABLE_TIME: Duration = Duration::from_secs(60);

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    super::streamed(table, |server: Arc<FileServer>, context, call, request: fs::CommitRoom| async move {
        storing::answer(call, async move |call| server.commit_room(call, &context, request).await).await
    })
}

/// What a commit says of the chunks.
#[derive(Debug)]
struct Told {
    drives: Vec<CommitDrive>,
    parts: StagedParts,
    /// In the order of the places.
    receipts: Vec<Receipt>,
}

/// A drive of a commit, and the room there that the caller has for the file.
struct Room {
    key: Arc<DriveKey>,
    store: StoreNumber,
    drive: DriveId,
    run: u64,
    tag: StagingTag,
}

impl FileServer {
    async fn commit_room(
        self: &Arc<Self>,
        call: &mut ServerCall,
        context: &Arc<CallContext>,
        commit: fs::CommitRoom,
    ) -> Result<fs::StatusReply, AbortCode> {
        let drives = count(commit.drives, fs::LAYOUT_DRIVES_MAX)?;
        let places = count(commit.places, fs::COMMIT_PLACES_MAX)?;
        let of_drives = drives * CommitDrive::WIRE_LEN;
        let tables = self.take_tables(call, &commit, of_drives + places * CommitPlace::WIRE_LEN).await?;
        let (drives, places) = tables.split_at_checked(of_drives).ok_or(SHORT_DATA)?;
        let drives = decoded(drives, CommitDrive::WIRE_LEN)?;
        let told = Told::new(drives, decoded(places, CommitPlace::WIRE_LEN)?)?;
        self.commit(context, &commit, told).await
    }

    /// The tables that follow the arguments.
    async fn take_tables(
        &self,
        call: &mut ServerCall,
        commit: &fs::CommitRoom,
        len: usize,
    ) -> Result<Bytes, AbortCode> {
        if commit.file_length.max(commit.grown_to) > i64::MAX as u64 {
            return Err(Errno::EFBIG.to_uae());
        }
        let tables = self.env.timeout(TABLE_TIME, call.read_exact(len)).await;
        tables.map_err(|_| SHORT_DATA)?.map_err(|_| SHORT_DATA)
    }

    async fn commit(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        commit: &fs::CommitRoom,
        told: Told,
    ) -> Result<fs::StatusReply, AbortCode> {
        let found = self.find_to_store(context, commit.fid, &commit.status).await?;
        if expected(commit).is_some_and(|expected| expected != found.record.data_version) {
            return Err(Errno::EAGAIN.to_uae());
        }
        let committed = self.commit_parts(context, commit, found, told).await;
        if committed.as_ref().err() == Some(&NO_TICKET.to_uae()) {
            let count = self.statistics.count_refused_commit();
            tracing::info!(peer = %context.peer, fid = %commit.fid, count, "a commit of chunks was refused");
        }
        committed
    }

    async fn commit_parts(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        commit: &fs::CommitRoom,
        found: Found,
        told: Told,
    ) -> Result<fs::StatusReply, AbortCode> {
        let no_room = NO_TICKET.to_uae();
        let holder = self.data_path.holders().of(context).ok_or(no_room)?;
        let rooms = told.drives.iter().map(|drive| self.room_at(drive, commit, &found, holder));
        let rooms = rooms.collect::<Option<Vec<_>>>().ok_or(no_room)?;
        if !told.has_receipts(&rooms) {
            return Err(no_room);
        }
        let id = TicketId::from_bytes(commit.room.0);
        let mut ticket = self.tickets.take(id, &Owner::Holder(holder)).ok_or(no_room)?;
        if ticket.change.fid != commit.fid {
            return Err(no_room);
        }
        ticket.data = Some(self.claim(&ticket, commit, &rooms, told.parts).await?);
        ticket.change.status = commit.status;
        ticket.change.file_length = commit.file_length;
        ticket.change.expected = expected(commit);
        self.commit_change(context, *ticket).await
    }

    /// Has the drives give the chunks.
    async fn claim(
        &self,
        ticket: &Ticket,
        commit: &fs::CommitRoom,
        rooms: &[Room],
        parts: StagedParts,
    ) -> Result<NewData, AbortCode> {
        let code = |error| self.code(commit.fid, &error);
        let staged_in = |room: &Room| StagedIn { drive: room.drive, run: room.run, tag: room.tag.0 };
        let from: Vec<_> = rooms.iter().map(staged_in).collect();
        let left_out = ticket.staging.as_ref().map_or(&[][..], |staging| &staging.left_out);
        let bytes = parts.bytes();
        let mut data = ticket.served.volume.claim(parts, &from, left_out).await.map_err(code)?;
        data.grow_to(commit.grown_to).map_err(code)?;
        self.statistics.count_stored_data(bytes);
        Ok(data)
    }

    /// The room that a commit names, as one of its drives knows it: of another caller, or for another file, it would have another tag.
    fn room_at(
        &self,
        told: &CommitDrive,
        commit: &fs::CommitRoom,
        found: &Found,
        holder: HolderId,
    ) -> Option<Room> {
        let partition = found.served.site.partition;
        let room = u128::from_be_bytes(commit.room.0);
        let in_use = self.partitions.store(partition)?.drives_in_use();
        in_use.into_iter().find_map(|drive| {
            let direct = self.partitions.direct(partition, drive)?;
            let key = direct.options().keys.present();
            let tag = key.staging_tag(room, commit.fid, holder);
            let is_named = key.drive().0.to_be_bytes() == told.drive.0;
            is_named.then(|| Room { key, store: direct.options().store, drive, run: told.run, tag })
        })
    }
}

/// The version that the file must have; `None` for any.
fn expected(commit: &fs::CommitRoom) -> Option<afs_wire::ids::DataVersion> {
    (commit.expected != fs::ANY_VERSION).then_some(commit.expected)
}

/// A number of rows of a table.
fn count(told: u32, most: usize) -> Result<usize, AbortCode> {
    usize::try_from(told).ok().filter(|count| *count <= most).ok_or(Errno::EINVAL.to_uae())
}

fn decoded<T: Decode>(table: &[u8], row_len: usize) -> Result<Vec<T>, AbortCode> {
    let row = |row| T::from_bytes(row).map_err(|_| AbortCode::RXGEN_SS_UNMARSHAL);
    table.chunks(row_len).map(row).collect()
}

impl Told {
    /// What the tables say, if it can be.
    fn new(drives: Vec<CommitDrive>, told: Vec<CommitPlace>) -> Result<Self, AbortCode> {
        let invalid = Errno::EINVAL.to_uae();
        let different: BTreeSet<_> = drives.iter().map(|drive| drive.drive.0).collect();
        let (mut places, mut receipts) = (Vec::new(), Vec::new());
        for CommitPlace { position, drive, chunk, receipt } in told {
            let at = usize::try_from(drive).ok().filter(|at| *at < drives.len()).ok_or(invalid)?;
            let chunk = ChunkRef::from_bytes(&chunk.0).ok_or(AbortCode::RXGEN_SS_UNMARSHAL)?;
            places.push(StagedPlace { position, at, chunk });
            receipts.push(Receipt(receipt.0));
        }
        let parts = StagedParts::new(places)?;
        if different.len() < drives.len() || parts.parts().count() > fs::COMMIT_PARTS_MAX {
            return Err(invalid);
        }
        Ok(Self { drives, parts, receipts })
    }

    /// Whether the receipt of each chunk is the right one, of its drive.
    fn has_receipts(&self, rooms: &[Room]) -> bool {
        let mut places = self.parts.places().iter().zip(&self.receipts);
        places.all(|(place, receipt)| {
            rooms.get(place.at).is_some_and(|room| room.receipt(place.chunk).equals(receipt))
        })
    }
}

impl Room {
    /// The receipt that the drive gives for a chunk that is staged there.
    fn receipt(&self, chunk: ChunkRef) -> Receipt {
        self.key.receipt(self.store, self.tag, self.run, chunk)
    }
}
