//! Transfers of chunks from clients to drives that the file server commands, into rooms of these clients (docs/protocol/extensions.md
//! "Commands"). The organisation that Gibson et al. 1997 call NetSCSI, for stores.

use afs_datapath::capability::{DriveId, TransferId};
use afs_datapath::frame::Content;
use afs_volume::DataRoute;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{ChunkToTake, SetStatus};
use afs_wire::ids::Fid;
use afs_wire::xdr::Fixed;

use super::server::FileServer;
use super::storing::NO_TICKET;
use super::ticket::{Owner, TicketId};
use crate::call_context::CallContext;

impl FileServer {
    /// Quota and space are those that the room has reserved, and the drive takes no more than the room has. A right that changes after it
    /// was looked at here has the commit refused: what the drive has taken by then is in no file.
    pub(super) async fn collect(
        &self,
        context: &CallContext,
        (fid, drive): (Fid, Fixed<16>),
        chunk: &ChunkToTake,
    ) -> Result<(), AbortCode> {
        let content = Content { length: chunk.length, crc: chunk.checksum };
        if !content.is_valid() {
            return Err(Errno::EINVAL.to_uae());
        }
        let found = self.find_to_store(context, fid, &SetStatus::default()).await?;
        if found.header.route != DataRoute::Commanded {
            return Err(Errno::EOPNOTSUPP.to_uae());
        }
        let no_room = NO_TICKET.to_uae();
        let holder = self.data_path.holders().of(context).ok_or(no_room)?;
        let of = self.tickets.room(TicketId::from_bytes(chunk.room.0), &Owner::Holder(holder));
        if of != Some(fid) {
            return Err(no_room);
        }
        let none = Errno::ENXIO.to_uae();
        let named = DriveId(u128::from_be_bytes(drive.0));
        let direct = self.partitions.direct_named(found.served.site.partition, named).ok_or(none)?;
        let key = direct.sealing().await.ok_or(none)?.key;
        let tag = key.staging_tag(u128::from_be_bytes(chunk.room.0), fid, holder);
        let from = (holder, TransferId(u128::from_be_bytes(chunk.transfer.0)));
        if direct.collect(from, tag, content).await { Ok(()) } else { Err(none) }
    }
}
