//! Commit, a call of our own: what a client has staged, in a room or at the own drive, becomes a file's
//! (docs/protocol/extensions.md "Commit").

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::StagingTag;
use afs_drive::ChunkRef;
use afs_rpc::{EnvExt, ServerCall, Table};
use afs_volume::{NewData, StagedIn, StagedParts, StagedPlace, VolumeError};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, CommitPlace};
use afs_wire::xdr::{Decode, Fixed};
use bytes::Bytes;

use super::object::Found;
use super::server::FileServer;
use super::storing::{self, NO_TICKET, SHORT_DATA};
use super::ticket::{Owner, Ticket, TicketId};
use crate::call_context::CallContext;
use crate::data_path::HolderId;

/// Time for the tables of drives and places (at most 432 KiB) to arrive.
const TABLE_TIME: Duration = Duration::from_secs(60);

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    super::streamed(table, |server: Arc<FileServer>, context, call, request: fs::Commit| async move {
        storing::answer(call, async move |call| server.commit_staged(call, &context, request).await).await
    })
}

/// What a commit says of the chunks.
#[derive(Debug)]
struct Told {
    /// Ids of the drives.
    drives: Vec<Fixed<16>>,
    parts: StagedParts,
}

/// Bytes of a drive's id.
const DRIVE_LEN: usize = 16;

impl FileServer {
    async fn commit_staged(
        self: &Arc<Self>,
        call: &mut ServerCall,
        context: &Arc<CallContext>,
        commit: fs::Commit,
    ) -> Result<fs::StatusReply, AbortCode> {
        if (commit.drives, commit.places) == (0, 0) {
            return self.commit_ticket(context, &commit).await;
        }
        let drives = count(commit.drives, fs::LAYOUT_DRIVES_MAX)?;
        let places = count(commit.places, fs::COMMIT_PLACES_MAX)?;
        let of_drives = drives * DRIVE_LEN;
        let tables = self.take_tables(call, &commit, of_drives + places * CommitPlace::WIRE_LEN).await?;
        let (drives, places) = tables.split_at_checked(of_drives).ok_or(SHORT_DATA)?;
        let drives = decoded(drives, DRIVE_LEN)?;
        let told = Told::new(drives, decoded(places, CommitPlace::WIRE_LEN)?)?;
        self.commit(context, &commit, told).await
    }

    /// Makes bytes that came by the data path the file's. The ticket is used up in any case.
    async fn commit_ticket(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        call: &fs::Commit,
    ) -> Result<fs::StatusReply, AbortCode> {
        let no_ticket = NO_TICKET.to_uae();
        let holder = self.data_path.holders().of(context).ok_or(no_ticket)?;
        let (id, owner) = (TicketId::from_bytes(call.staged.0), Owner::Holder(holder));
        if self.tickets.room(id, &owner).is_some() {
            return Err(no_ticket);
        }
        let mut ticket = self.tickets.take(id, &owner).ok_or(no_ticket)?;
        if ticket.change.fid != call.fid {
            return Err(no_ticket);
        }
        if call.file_length.max(call.grown_to) > i64::MAX as u64 {
            return Err(Errno::EFBIG.to_uae());
        }
        self.find_to_store(context, call.fid, &call.status).await?;
        ticket.change.status = call.status;
        ticket.change.file_length = call.file_length;
        ticket.change.expected = expected(call);
        if let Some(data) = &mut ticket.data {
            data.grow_to(call.grown_to).map_err(|error| self.code(call.fid, &error))?;
        }
        self.commit_change(context, *ticket).await
    }

    /// The tables that follow the arguments.
    async fn take_tables(
        &self,
        call: &mut ServerCall,
        commit: &fs::Commit,
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
        commit: &fs::Commit,
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
        commit: &fs::Commit,
        found: Found,
        told: Told,
    ) -> Result<fs::StatusReply, AbortCode> {
        let no_room = NO_TICKET.to_uae();
        let holder = self.data_path.holders().of(context).ok_or(no_room)?;
        let from = told.drives.iter().map(|drive| self.staged_in(*drive, commit, &found, holder));
        let from = from.collect::<Option<Vec<_>>>().ok_or(no_room)?;
        let (id, owner) = (TicketId::from_bytes(commit.staged.0), Owner::Holder(holder));
        if self.tickets.room(id, &owner) != Some(commit.fid) {
            return Err(no_room);
        }
        let mut ticket = self.tickets.take(id, &owner).ok_or(no_room)?;
        match self.claim(&ticket, commit, &from, told.parts).await {
            Ok(data) => ticket.data = Some(data),
            Err(code) => {
                self.tickets.put(id, owner, ticket);
                return Err(code);
            }
        }
        ticket.change.status = commit.status;
        ticket.change.file_length = commit.file_length;
        ticket.change.expected = expected(commit);
        self.commit_change(context, *ticket).await
    }

    /// Has the drives make the chunks durable, and give them. Nothing of the file has changed if they do not: the client stores by another way.
    async fn claim(
        &self,
        ticket: &Ticket,
        commit: &fs::Commit,
        from: &[StagedIn],
        parts: StagedParts,
    ) -> Result<NewData, AbortCode> {
        let code = |error: VolumeError| self.code(commit.fid, &error);
        let left_out = ticket.staging.as_ref().map_or(&[][..], |staging| &staging.left_out);
        let bytes = parts.bytes();
        let claimed = ticket.served.volume.claim(parts, from, left_out).await;
        let mut data = claimed.map_err(|error| match error {
            VolumeError::Drive(_) => NO_TICKET.to_uae(),
            error => code(error),
        })?;
        data.grow_to(commit.grown_to).map_err(code)?;
        self.statistics.count_stored_data(bytes);
        Ok(data)
    }

    /// The room that a commit names, as one of its drives knows it: of another caller, or for another file, it would have another tag.
    fn staged_in(
        &self,
        named: Fixed<16>,
        commit: &fs::Commit,
        found: &Found,
        holder: HolderId,
    ) -> Option<StagedIn> {
        let partition = found.served.site.partition;
        let room = u128::from_be_bytes(commit.staged.0);
        let in_use = self.partitions.store(partition)?.drives_in_use();
        in_use.into_iter().find_map(|drive| {
            let key = self.partitions.direct(partition, drive)?.options().keys.present();
            let StagingTag(tag) = key.staging_tag(room, commit.fid, holder);
            (key.drive().0.to_be_bytes() == named.0).then_some(StagedIn { drive, tag })
        })
    }
}

/// The version that the file must have; `None` for any.
fn expected(commit: &fs::Commit) -> Option<afs_wire::ids::DataVersion> {
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
    fn new(drives: Vec<Fixed<16>>, told: Vec<CommitPlace>) -> Result<Self, AbortCode> {
        let invalid = Errno::EINVAL.to_uae();
        let different: BTreeSet<_> = drives.iter().map(|drive| drive.0).collect();
        let mut places = Vec::new();
        for CommitPlace { position, drive, chunk } in told {
            let at = usize::try_from(drive).ok().filter(|at| *at < drives.len()).ok_or(invalid)?;
            let chunk = ChunkRef::from_bytes(&chunk.0).ok_or(AbortCode::RXGEN_SS_UNMARSHAL)?;
            places.push(StagedPlace { position, at, chunk });
        }
        let parts = StagedParts::new(places)?;
        if different.len() < drives.len() || parts.parts().count() > fs::COMMIT_PARTS_MAX {
            return Err(invalid);
        }
        Ok(Self { drives, parts })
    }
}
