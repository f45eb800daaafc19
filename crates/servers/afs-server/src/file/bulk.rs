//! BulkStatus and InlineBulkStatus: the status of many objects.

use std::sync::Arc;

use afs_rpc::Table;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, CallBack, Promises, Status, Statuses, VolSync};

use super::server::FileServer;
use crate::call_context::CallContext;
use crate::callbacks::Grant;

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    let table = super::call(table, |server: Arc<FileServer>, context, call: fs::BulkStatus| async move {
        server.bulk_status(&context, &call.fids).await
    });
    super::call(table, |server: Arc<FileServer>, context, call: fs::InlineBulkStatus| async move {
        server.inline_bulk_status(&context, &call.fids).await
    })
}

impl FileServer {
    /// Fails as a whole when one object fails.
    async fn bulk_status(
        &self,
        context: &CallContext,
        fids: &fs::Fids,
    ) -> Result<fs::BulkStatusReply, AbortCode> {
        if fids.is_empty() {
            return Err(Errno::EINVAL.to_uae());
        }
        self.recall_many(context, fids.iter().copied()).await;
        let mut reply = Answers::default();
        for fid in fids {
            self.statistics.count_fetch();
            reply.add(self.fetch_status(context, *fid, Grant::Bulk).await?);
        }
        Ok(reply.finish())
    }

    /// Reports failures object by object. The volume's date is that of the first object that could be read.
    pub(super) async fn inline_bulk_status(
        &self,
        context: &CallContext,
        fids: &fs::Fids,
    ) -> Result<fs::BulkStatusReply, AbortCode> {
        self.recall_many(context, fids.iter().copied()).await;
        let mut reply = Answers::default();
        for fid in fids {
            self.statistics.count_fetch();
            match self.fetch_status(context, *fid, Grant::Bulk).await {
                Ok(answer) => reply.add(answer),
                Err(code) => reply.add_failure(context.code(code)),
            }
        }
        Ok(reply.finish())
    }
}

#[derive(Default)]
struct Answers {
    statuses: Vec<Status>,
    callbacks: Vec<CallBack>,
    sync: Option<VolSync>,
}

impl Answers {
    fn add(&mut self, answer: fs::FetchStatusReply) {
        self.statuses.push(answer.status);
        self.callbacks.push(answer.callback);
        self.sync.get_or_insert(answer.sync);
    }

    fn add_failure(&mut self, code: AbortCode) {
        self.statuses.push(Status::failed(code));
        self.callbacks.push(CallBack::NONE);
    }

    fn finish(self) -> fs::BulkStatusReply {
        fs::BulkStatusReply {
            statuses: Statuses::first_of(self.statuses),
            callbacks: Promises::first_of(self.callbacks),
            sync: self.sync.unwrap_or_default(),
        }
    }
}
