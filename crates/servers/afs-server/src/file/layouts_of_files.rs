//! GetLayouts, a call of our own: the layouts of several files, each decided by itself (docs/protocol/extensions.md "Layouts").

use std::sync::Arc;

use afs_rpc::Table;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{
    self, LAYOUT_FILE_PARTS_MAX, LayoutOutcome, LayoutOutcomes, LayoutRequest, LayoutRequests,
};

use super::server::{CallContext, FileServer};

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    super::call(table, |server: Arc<FileServer>, context, call: fs::GetLayouts| async move {
        server.get_layouts(&context, &call.wanted).await
    })
}

impl FileServer {
    async fn get_layouts(
        &self,
        context: &CallContext,
        wanted: &LayoutRequests,
    ) -> Result<fs::GetLayoutsReply, AbortCode> {
        if wanted.is_empty() {
            return Err(Errno::EINVAL.to_uae());
        }
        self.recall_many(context, wanted.iter().map(|request| request.fid)).await;
        let mut outcomes = Vec::with_capacity(wanted.len());
        for request in wanted {
            let outcome = self.layout_of(context, request).await.unwrap_or_else(LayoutOutcome::refused);
            self.audit_capability(context, request.fid, outcome.error);
            outcomes.push(outcome);
        }
        Ok(fs::GetLayoutsReply { outcomes: LayoutOutcomes::first_of(outcomes) })
    }

    async fn layout_of(
        &self,
        context: &CallContext,
        request: &LayoutRequest,
    ) -> Result<LayoutOutcome, AbortCode> {
        let LayoutRequest { fid, version } = *request;
        let call = fs::GetLayout { fid, version, start: 0, end: i64::MAX as u64 };
        let given = self.get_layout(context, call, LAYOUT_FILE_PARTS_MAX).await;
        let given = given.map_err(|code| context.code(code))?;
        LayoutOutcome::given(given).ok_or_else(|| Errno::E2BIG.to_uae())
    }
}
