//! BulkCapability and StatusAndCapability, calls of our own: capabilities of the data path that cost a client no
//! calls of their own (docs/protocol/extensions.md "Many capabilities in one call").

use std::sync::Arc;

use afs_rpc::Table;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, CapabilityOutcome, CapabilityOutcomes, CapabilityRequest};

use super::capabilities::Wanted;
use super::server::{CallContext, FileServer};

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    let table = super::call(table, |server: Arc<FileServer>, context, call: fs::BulkCapability| async move {
        server.bulk_capability(&context, &call.wanted).await
    });
    super::call(table, |server: Arc<FileServer>, context, call: fs::StatusAndCapability| async move {
        server.status_and_capability(&context, &call).await
    })
}

impl FileServer {
    async fn bulk_capability(
        &self,
        context: &CallContext,
        wanted: &fs::CapabilityRequests,
    ) -> Result<fs::BulkCapabilityReply, AbortCode> {
        self.data_path.offered().ok_or(AbortCode::RXGEN_OPCODE)?;
        if wanted.is_empty() {
            return Err(Errno::EINVAL.to_uae());
        }
        self.recall_many(context, wanted.iter().map(|request| request.fid)).await;
        let mut outcomes = Vec::with_capacity(wanted.len());
        for request in wanted {
            let outcome = self.outcome(context, request).await;
            self.audit_capability(context, request.fid, outcome.error);
            outcomes.push(outcome);
        }
        Ok(fs::BulkCapabilityReply { outcomes: CapabilityOutcomes::first_of(outcomes) })
    }

    /// Who has no right to the files has asked for their status all the same: that is no refusal of which the
    /// audit log tells.
    async fn status_and_capability(
        &self,
        context: &CallContext,
        call: &fs::StatusAndCapability,
    ) -> Result<fs::StatusAndCapabilityReply, AbortCode> {
        let fs::BulkStatusReply { statuses, callbacks, sync } =
            self.inline_bulk_status(context, &call.fids).await?;
        let outcome = self.outcome(context, &call.wanted).await;
        if outcome.error == AbortCode::OK {
            self.audit_capability(context, call.wanted.fid, outcome.error);
        }
        Ok(fs::StatusAndCapabilityReply { statuses, callbacks, sync, outcome })
    }

    async fn outcome(&self, context: &CallContext, request: &CapabilityRequest) -> CapabilityOutcome {
        let given = match Wanted::of(request.access) {
            Ok(wanted) => self.capability(context, request.fid, wanted.or_of_directory()).await,
            Err(code) => Err(code),
        };
        given.map_or_else(|code| CapabilityOutcome::refused(context.code(code)), CapabilityOutcome::given)
    }
}
