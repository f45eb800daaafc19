//! Changes that were decided under a lost lease at a server that knows no lists, as where the volume has moved to one of another maker: by plain
//! calls. After a lost reply the rules of the call decide.

use afs_wire::fs::{Change, ChangeReply};
use afs_wire::rpc::Request;

use super::data::bytes_of;
use super::state::Loss;
use crate::error::{ErrorKind, Result, VenusError};
use crate::leases::Entry;
use crate::venus::Venus;

impl Venus {
    /// Makes a change by its plain call. The data of a file is stored afterwards.
    pub(super) async fn make_by_a_plain_call(
        &self,
        loss: &mut Loss<'_>,
        entry: &Entry,
        change: &Change,
    ) -> Result<ChangeReply> {
        Ok(match change.clone() {
            Change::CreateFile(small) => {
                let made = self.plain(loss, small.create.clone()).await?;
                if !small.data.is_empty() {
                    let data = (bytes_of(&small.data), small.create.status.mod_time);
                    loss.unstored.push(self.unstored(entry, made.fid, made.status.data_version, data));
                }
                ChangeReply::CreateFile(made)
            }
            Change::MakeDir(call) => ChangeReply::MakeDir(self.plain(loss, call).await?),
            Change::Symlink(call) => ChangeReply::Symlink(self.plain(loss, call).await?),
            Change::Link(call) => ChangeReply::Link(self.plain(loss, call).await?),
            Change::StoreStatus(call) => ChangeReply::StoreStatus(self.plain(loss, call).await?),
            Change::RemoveFile(call) => ChangeReply::RemoveFile(self.plain(loss, call).await?),
            Change::RemoveDir(call) => ChangeReply::RemoveDir(self.plain(loss, call).await?),
            Change::Rename(call) => ChangeReply::Rename(self.plain(loss, call).await?),
            Change::Store(call) => {
                return Err(VenusError::new(ErrorKind::NotSupported, "StoreData").of(call.fid));
            }
        })
    }

    async fn plain<R: Request + Clone>(&self, loss: &Loss<'_>, call: R) -> Result<R::Reply>
    where
        R::Reply: Send,
    {
        let call = Box::pin(self.calls.call(&self.context, &loss.lease.volume, call));
        call.await.result.map(|answered| answered.value)
    }
}
