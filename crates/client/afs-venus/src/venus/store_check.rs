//! Verification of a store whose reply was lost: the server's bytes are compared with the cached ones.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afs_rpc::Stall;
use afs_wire::fs::Status;
use afs_wire::ids::DataVersion;
use bytes::Bytes;

use crate::cache::{CacheIo, CacheWorker};
use crate::data::FileData;
use crate::error::{ErrorKind, Result, VenusError};
use crate::location::Volume;
use crate::transfer::{FETCH, Sink, Wanted, directory_of};
use crate::venus::Venus;
use crate::vnode::Vnode;

impl Venus {
    /// True if the server's file is the result of a local store that was based on the version `into`. Then nothing is
    /// dirty any more; ranges that were not compared are fetched again when needed, unless the kernel uses the file by
    /// passthrough.
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
            content.ranges_to_compare()
        };
        // A truncation can be recognised only if the whole file is cached.
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

    /// True if the server has the same bytes in a range as the cache.
    async fn is_at_server(
        &self,
        vnode: &Vnode,
        volume: &Arc<Volume>,
        data: &Arc<FileData>,
        range: Range<u64>,
        status: &Status,
    ) -> Result<bool> {
        let fid = vnode.key.fid;
        let outcome = self
            .on_sites(volume, vnode.key, FETCH, |target| {
                let range = range.clone();
                async move {
                    let mut sink = ComparingSink::new(self.files.worker(), data, range.start);
                    let wanted = Wanted {
                        fid,
                        range: range.clone(),
                        held: Some(status.data_version),
                        directory: Some(directory_of(fid, status)),
                    };
                    let fetched = self.transfer.fetch(&target, &wanted, &mut sink).await;
                    if sink.differs() {
                        return Ok(false);
                    }
                    let version = fetched?.version();
                    Ok(sink.at == range.end && version == status.data_version)
                }
            })
            .await;
        outcome.result.map(|answered| answered.value).map_err(|error| error.of(fid))
    }
}

/// Sink that compares fetched bytes with cached ones. Stops at the first difference.
struct ComparingSink<'a> {
    worker: &'a CacheWorker,
    data: &'a FileData,
    from: u64,
    at: u64,
    differs: Arc<AtomicBool>,
}

impl<'a> ComparingSink<'a> {
    fn new(worker: &'a CacheWorker, data: &'a FileData, from: u64) -> Self {
        ComparingSink { worker, data, from, at: from, differs: Arc::default() }
    }

    fn differs(&self) -> bool {
        self.differs.load(Ordering::SeqCst)
    }
}

impl Sink for ComparingSink<'_> {
    fn begin(&mut self, _: u64) {
        *self = ComparingSink::new(self.worker, self.data, self.from);
    }

    fn put(&mut self, parts: Vec<Bytes>) -> CacheIo<()> {
        if self.differs() {
            return CacheIo::done(Err(VenusError::new(ErrorKind::Stale, FETCH)));
        }
        let (file, mut at, differs) = (self.data.file.clone(), self.at, self.differs.clone());
        self.at += parts.iter().map(|part| part.len() as u64).sum::<u64>();
        self.worker.run(Stall::Any, move || {
            for part in parts {
                if file.read_at(at, part.len())? != part {
                    differs.store(true, Ordering::SeqCst);
                    break;
                }
                at += part.len() as u64;
            }
            Ok(())
        })
    }
}
