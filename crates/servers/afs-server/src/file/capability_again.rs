//! Capabilities for the drives of layouts that clients have, given again (docs/protocol/extensions.md "Layouts").

use afs_datapath::capability::DriveId;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{CapabilityAccess, CapabilityOutcome};
use afs_wire::ids::Fid;
use afs_wire::xdr::Fixed;

use super::capabilities::{Wanted, group};
use super::server::FileServer;
use crate::call_context::CallContext;

impl FileServer {
    /// As for a layout the rights are looked at twice, with the generation between.
    pub(super) async fn again(
        &self,
        context: &CallContext,
        (fid, drive): (Fid, Fixed<16>),
    ) -> Result<CapabilityOutcome, AbortCode> {
        let none = Errno::EOPNOTSUPP.to_uae();
        let wanted = Wanted::of(CapabilityAccess::READ)?;
        let found = self.find_to_send(context, fid, wanted).await?;
        let group = group(fid, &found, wanted.reach(context, &found)?);
        let drive = DriveId(u128::from_be_bytes(drive.0));
        let direct = self.partitions.direct_named(found.served.site.partition, drive).ok_or(none)?;
        let sent = self.sent_to(&found, direct, 0).await.ok_or(none)?;
        self.data_path.layouts().enter(fid, found.directory(fid.volume)).await;
        self.find_unchanged(context, (fid, wanted), group).await?;
        let seconds = self.seconds_of_layout(context)?;
        let capability = self.send(&sent, group, seconds).ok_or(none)?.capability;
        let valid_from = sent.sealing.valid_from.0;
        Ok(CapabilityOutcome { valid_from, ..CapabilityOutcome::given(capability) })
    }
}
