//! Deliver, a call of our own: the file server commands a drive to send bytes of a file to a client (docs/protocol/extensions.md
//! "Layouts"). The organisation that Gibson et al. 1997 call NetSCSI.

use std::sync::Arc;

use afs_datapath::capability::TransferId;
use afs_rpc::Table;
use afs_volume::{DataRoute, LocatedChunk};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, CapabilityAccess, LAYOUT_PARTS_MAX};

use super::capabilities::{Wanted, group};
use super::layout::{Sent, Sents};
use super::server::{CallContext, FileServer};

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    super::call(table, |server: Arc<FileServer>, context, call: fs::Deliver| async move {
        server.deliver(&context, &call).await
    })
}

impl FileServer {
    /// The rights are looked at twice, as for a layout: a change after the second look revokes the terms of the command.
    async fn deliver(&self, context: &CallContext, call: &fs::Deliver) -> Result<(), AbortCode> {
        let wanted = Wanted::of(CapabilityAccess::READ)?;
        let found = self.find_to_send(context, call.fid, wanted).await?;
        if found.header.route != DataRoute::Commanded {
            return Err(Errno::EOPNOTSUPP.to_uae());
        }
        let group = group(call.fid, &found, wanted.reach(context, &found)?);
        let end = call.position.checked_add(1).ok_or(Errno::EINVAL.to_uae())?;
        let (object, range) = ((call.fid, call.version), call.position..end);
        let layout = self.layout(&found, object, range.clone(), LAYOUT_PARTS_MAX).await?;
        let sents = self.drives_of(&found, &layout).await;
        self.data_path.layouts().enter(call.fid, found.directory(call.fid.volume)).await;
        let found = self.find_to_send(context, call.fid, wanted).await?;
        if self::group(call.fid, &found, wanted.reach(context, &found)?) != group {
            return Err(AbortCode::VBUSY);
        }
        let layout = self.layout(&found, object, range, LAYOUT_PARTS_MAX).await?;
        let none = Errno::ENXIO.to_uae();
        let part = layout.parts.iter().find(|part| part.range().contains(&call.position)).ok_or(none)?;
        let (at, offset, sent) = copy_at(&part.copies, &sents, call.drive.0).ok_or(none)?;
        let terms = sent.terms(at, offset, part.len, call.fid).ok_or(none)?;
        let to = (sent.sealing.key.tag(group), TransferId(u128::from_be_bytes(call.transfer.0)));
        if sent.direct.deliver(to, at.chunk, terms).await { Ok(()) } else { Err(none) }
    }
}

/// The copy on a drive.
fn copy_at<'a>(
    copies: &[(LocatedChunk, u32)],
    sents: &'a Sents,
    drive: [u8; 16],
) -> Option<(LocatedChunk, u32, &'a Sent)> {
    let found = copies.iter().filter_map(|(at, offset)| Some((*at, *offset, sents.get(&at.drive)?)));
    let mut found = found;
    found.find(|(.., sent)| sent.sealing.key.drive().0.to_be_bytes() == drive)
}
