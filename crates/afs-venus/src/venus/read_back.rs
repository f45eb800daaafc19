//! Whether a store whose answer was lost was carried out: the server's bytes are compared with those here.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_rpc::CallError;
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, Status};
use afs_wire::ids::DataVersion;
use afs_wire::rpc::Request;

use crate::data::FileData;
use crate::error::Result;
use crate::location::Volume;
use crate::venus::Venus;
use crate::venus::fetch::{open_fetch, read_piece};
use crate::vnode::Vnode;

/// Bytes compared at a time.
const PIECE: u64 = 256 << 10;

impl Venus {
    /// Whether the server's file is what a store of ours into the version `into` made of it. If so, nothing is unsaved any
    /// more; what was not compared is fetched anew when it is wanted, unless a kernel reads the file by itself.
    pub(super) async fn was_carried_out(
        &self,
        vnode: &Vnode,
        volume: &Arc<Volume>,
        data: &Arc<FileData>,
        status: &Status,
        into: DataVersion,
    ) -> Result<bool> {
        let marks = {
            let content = data.content();
            if !content.may_be_stored(status, into) {
                return Ok(false);
            }
            content.marks_of_store()
        };
        // A cut leaves nothing to know it by, unless all of the file is here.
        if marks.is_empty() && status.length > 0 {
            return Ok(false);
        }
        for range in marks.iter() {
            if !self.is_at_server(vnode, volume, data, range, status).await? {
                return Ok(false);
            }
        }
        let mut content = data.content();
        if !content.may_be_stored(status, into) {
            return Ok(false);
        }
        let is_whole = marks.contains(&(0..content.length));
        let stays = content.is_complete() && data.backed.load(Ordering::SeqCst);
        if !is_whole && !stays {
            content.keep_only(marks);
        }
        content.was_stored(status.data_version);
        Ok(true)
    }

    /// Whether the server has the same bytes in a range as the cache.
    async fn is_at_server(
        &self,
        vnode: &Vnode,
        volume: &Arc<Volume>,
        data: &Arc<FileData>,
        range: Range<u64>,
        status: &Status,
    ) -> Result<bool> {
        let fid = vnode.key.fid;
        let tried = self
            .on_sites(volume, fs::FetchData64::NAME, |target| {
                let range = range.clone();
                async move {
                    let len = range.end - range.start;
                    let (mut call, length) = open_fetch(&target, fid, range.start, len).await?;
                    let mut at = range.start;
                    while at < range.start + length {
                        let left = range.start + length - at;
                        for part in read_piece(&mut call, left.min(PIECE) as usize).await? {
                            let (file, len) = (data.file.clone(), part.len());
                            let ours = self.disk(move || file.read_at(at, len)).await;
                            let ours = ours.map_err(|_| CallError::GivenUp(AbortCode::VIO))?;
                            if ours != part {
                                call.abort(AbortCode::RX_USER_ABORT);
                                return Ok(false);
                            }
                            at += len as u64;
                        }
                    }
                    let reply = call.finish::<fs::FetchData64>().await?;
                    Ok(at == range.end && reply.status.data_version == status.data_version)
                }
            })
            .await;
        tried.result.map(|answered| answered.value).map_err(|error| error.of(fid))
    }
}
