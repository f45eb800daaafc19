//! Transfers of chunks from drives to clients that the file server commands (docs/protocol/extensions.md "Commands"). The organisation that
//! Gibson et al. 1997 call NetSCSI.

use afs_datapath::capability::TransferId;
use afs_volume::{DataRoute, LocatedChunk};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{CapabilityAccess, PartToSend};
use afs_wire::ids::Fid;
use afs_wire::xdr::Fixed;

use super::capabilities::{Wanted, group};
use super::layout::{Sent, Sents};
use super::server::FileServer;
use crate::call_context::CallContext;

impl FileServer {
    /// The rights are looked at twice, as for a layout: a change after the second look revokes the terms of the command.
    pub(super) async fn deliver(
        &self,
        context: &CallContext,
        (fid, drive): (Fid, Fixed<16>),
        part: &PartToSend,
    ) -> Result<(), AbortCode> {
        let wanted = Wanted::of(CapabilityAccess::READ)?;
        let found = self.find_to_send(context, fid, wanted).await?;
        if found.header.route != DataRoute::Commanded {
            return Err(Errno::EOPNOTSUPP.to_uae());
        }
        let group = group(fid, &found, wanted.reach(context, &found)?);
        let end = part.position.checked_add(1).ok_or(Errno::EINVAL.to_uae())?;
        let (object, range) = ((fid, part.version), part.position..end);
        let layout = self.layout(&found, object, range.clone(), 1).await?;
        let sents = self.drives_of(&found, &layout).await;
        self.data_path.layouts().enter(fid, found.directory(fid.volume)).await;
        let found = self.find_unchanged(context, (fid, wanted), group).await?;
        let layout = self.layout(&found, object, range, 1).await?;
        let none = Errno::ENXIO.to_uae();
        let laid = layout.parts.iter().find(|laid| laid.range().contains(&part.position)).ok_or(none)?;
        let (at, offset, sent) = copy_at(&laid.copies, &sents, drive.0).ok_or(none)?;
        let terms = sent.terms(at, offset, laid.len, fid).ok_or(none)?;
        let to = (sent.sealing.key.tag(group), TransferId(u128::from_be_bytes(part.transfer.0)));
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
