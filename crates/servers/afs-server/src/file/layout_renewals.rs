//! RenewLayouts, a call of our own: capabilities for the drives of layouts that clients have, several in one call
//! (docs/protocol/extensions.md "Layouts").

use std::sync::Arc;

use afs_datapath::capability::DriveId;
use afs_rpc::Table;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{
    self, CapabilityAccess, CapabilityOutcome, GetCapabilityReply, LayoutRenewal, LayoutRenewed,
    LayoutsRenewed,
};

use super::capabilities::{Wanted, group};
use super::server::{CallContext, FileServer};

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    super::call(table, |server: Arc<FileServer>, context, call: fs::RenewLayouts| async move {
        server.renew_layouts(&context, &call.wanted).await
    })
}

impl FileServer {
    async fn renew_layouts(
        &self,
        context: &CallContext,
        wanted: &fs::LayoutRenewals,
    ) -> Result<fs::RenewLayoutsReply, AbortCode> {
        if wanted.is_empty() {
            return Err(Errno::EINVAL.to_uae());
        }
        self.recall_many(context, wanted.iter().map(|renewal| renewal.fid)).await;
        let mut outcomes = Vec::with_capacity(wanted.len());
        for renewal in wanted {
            let renewed = self.renew_layout(context, renewal).await;
            let code = renewed.as_ref().err().map_or(AbortCode::OK, |code| context.code(*code));
            self.audit_capability(context, renewal.fid, code);
            outcomes.push(renewed.unwrap_or_else(|_| LayoutRenewed {
                outcome: CapabilityOutcome::refused(code),
                valid_from: 0,
            }));
        }
        Ok(fs::RenewLayoutsReply { outcomes: LayoutsRenewed::first_of(outcomes) })
    }

    /// As for a layout the rights are looked at twice, with the generation between.
    async fn renew_layout(
        &self,
        context: &CallContext,
        renewal: &LayoutRenewal,
    ) -> Result<LayoutRenewed, AbortCode> {
        let (fid, none) = (renewal.fid, Errno::EOPNOTSUPP.to_uae());
        let wanted = Wanted::of(CapabilityAccess::READ)?;
        let found = self.find_to_send(context, fid, wanted).await?;
        let group = group(fid, &found, wanted.reach(context, &found)?);
        let drive = DriveId(u128::from_be_bytes(renewal.drive.0));
        let direct = self.partitions.direct_named(found.served.site.partition, drive).ok_or(none)?;
        let sent = self.sent_to(&found, direct, 0).await.ok_or(none)?;
        self.data_path.layouts().enter(fid, found.directory(fid.volume)).await;
        self.find_unchanged(context, (fid, wanted), group).await?;
        let seconds = self.seconds_of_layout(context)?;
        let GetCapabilityReply { arguments, secret, seconds } =
            self.send(&sent, group, seconds).ok_or(none)?.capability;
        let outcome = CapabilityOutcome::given(GetCapabilityReply { arguments, secret, seconds });
        Ok(LayoutRenewed { outcome, valid_from: sent.sealing.valid_from.0 })
    }
}
