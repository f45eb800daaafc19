//! Collect, a call of our own: the file server commands a drive to take a chunk of a store from a client, into a room of that client
//! (docs/protocol/extensions.md "Rooms"). The organisation that Gibson et al. 1997 call NetSCSI, for stores.

use std::sync::Arc;

use afs_datapath::capability::{DriveId, TransferId};
use afs_datapath::frame::Content;
use afs_rpc::Table;
use afs_volume::DataRoute;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, SetStatus};

use super::server::{CallContext, FileServer};
use super::storing::NO_TICKET;
use super::ticket::{Owner, TicketId};

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    super::call(table, |server: Arc<FileServer>, context, call: fs::Collect| async move {
        server.collect(&context, &call).await
    })
}

impl FileServer {
    /// Quota and space are those that the room has reserved, and the drive takes no more than the room has. A right that changes after it
    /// was looked at here has the commit refused: what the drive has taken by then is in no file.
    async fn collect(&self, context: &CallContext, call: &fs::Collect) -> Result<(), AbortCode> {
        let content = Content { length: call.length, crc: call.checksum };
        if !content.is_valid() {
            return Err(Errno::EINVAL.to_uae());
        }
        let found = self.find_to_store(context, call.fid, &SetStatus::default()).await?;
        if found.header.route != DataRoute::Commanded {
            return Err(Errno::EOPNOTSUPP.to_uae());
        }
        let no_room = NO_TICKET.to_uae();
        let holder = self.data_path.holders().of(context).ok_or(no_room)?;
        let of = self.tickets.room(TicketId::from_bytes(call.room.0), &Owner::Holder(holder));
        if of != Some(call.fid) {
            return Err(no_room);
        }
        let none = Errno::ENXIO.to_uae();
        let named = DriveId(u128::from_be_bytes(call.drive.0));
        let direct = self.partitions.direct_named(found.served.site.partition, named).ok_or(none)?;
        let key = direct.sealing().await.ok_or(none)?.key;
        let tag = key.staging_tag(u128::from_be_bytes(call.room.0), call.fid, holder);
        let from = (holder, TransferId(u128::from_be_bytes(call.transfer.0)));
        if direct.collect(from, tag, content).await { Ok(()) } else { Err(none) }
    }
}
