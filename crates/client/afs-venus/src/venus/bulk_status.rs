//! Status of many objects in one call, which may bring a capability of the data path for the files among them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::error::AbortCode;
use afs_wire::fs::{self, Fids, FileKind};
use afs_wire::ids::Fid;

use crate::calls::CallReply;
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::Key;
use crate::location::Volume;
use crate::venus::Venus;
use crate::vnode::Vnode;

/// What was decided about the objects was sent before.
const ABOUT: Option<&[Key]> = Some(&[]);

impl Venus {
    /// Fetches the status of up to 50 objects of one volume. Objects that cannot be fetched are left out.
    pub(super) async fn bulk_status(&self, volume: &Arc<Volume>, keys: &[Key]) -> Result<()> {
        self.bulk_status_in(volume, keys, None).await
    }

    /// The same of objects in a directory. If its files are read by the data path, the call brings the capability for them
    /// when that is missing.
    pub(super) async fn bulk_status_in(
        &self,
        volume: &Arc<Volume>,
        keys: &[Key],
        directory: Option<Key>,
    ) -> Result<()> {
        let vnodes: Vec<Arc<Vnode>> = keys.iter().take(fs::FIDS_MAX).map(|key| self.vnode(*key)).collect();
        self.bulk_status_of(volume, &vnodes, directory).await.map(drop)
    }

    /// The same of up to 50 objects, with what was replied: as many statuses, in this order.
    pub(super) async fn bulk_status_of(
        &self,
        volume: &Arc<Volume>,
        vnodes: &[Arc<Vnode>],
        directory: Option<Key>,
    ) -> Result<fs::BulkStatusReply> {
        let fids = Fids::first_of(vnodes.iter().map(|vnode| vnode.key.fid));
        let has_files = fids.iter().any(|fid| !fid.is_directory());
        let directory = directory.filter(|_| has_files).map(|directory| directory.fid);
        let about: Vec<Key> = vnodes.iter().map(|vnode| vnode.key).collect();
        self.send_first(volume, Some(&about)).await?;
        let answered = self.bulk_call(volume, fids, directory).await?;
        let reply = &answered.value;
        if reply.statuses.len() != vnodes.len() || reply.callbacks.len() != vnodes.len() {
            return Err(VenusError::new(ErrorKind::Protocol, "InlineBulkStatus"));
        }
        if let Some(directory) = directory {
            let files = vnodes
                .iter()
                .zip(&reply.statuses)
                .filter(|(_, status)| status.kind == FileKind::File && status.error == AbortCode::OK);
            let told = |(vnode, status): (&Arc<Vnode>, &fs::Status)| {
                (vnode.key.fid, status.data_version, status.length)
            };
            let files: Vec<_> = files.map(told).collect();
            self.transfer.statuses_came(&answered.server, (answered.token, directory), &files);
        }
        for ((vnode, status), callback) in vnodes.iter().zip(&reply.statuses).zip(&reply.callbacks) {
            if status.error == AbortCode::OK {
                self.promises.record_reply(volume, vnode, status, callback, &reply.sync, &answered.origin());
            } else if ErrorKind::of_abort(status.error) == ErrorKind::Stale {
                self.removed_at_server(vnode);
            }
        }
        Ok(answered.value)
    }

    async fn bulk_call(
        &self,
        volume: &Arc<Volume>,
        fids: Fids,
        directory: Option<Fid>,
    ) -> Result<CallReply<fs::BulkStatusReply>> {
        if let Some(directory) = directory
            && let Some(answered) = self.bulk_call_with_capability(volume, &fids, directory).await
        {
            return answered;
        }
        if !self.has_plain_bulk_only(volume) {
            match self.call_about(volume, ABOUT, fs::InlineBulkStatus { fids: fids.clone() }).await.result {
                Err(error) if error.code == Some(AbortCode::RXGEN_OPCODE) => {
                    let sites = volume.sites(self.now());
                    sites.iter().for_each(|server| server.plain_bulk_only.store(true, Ordering::Relaxed));
                }
                other => return other,
            }
        }
        self.call_about(volume, ABOUT, fs::BulkStatus { fids }).await.result
    }

    /// True if a server of the volume does not know InlineBulkStatus: one object that cannot be fetched fails the whole call.
    pub(super) fn has_plain_bulk_only(&self, volume: &Volume) -> bool {
        volume.sites(self.now()).iter().any(|server| server.plain_bulk_only.load(Ordering::Relaxed))
    }

    /// `None` if no capability is needed, or the server gives none with statuses.
    async fn bulk_call_with_capability(
        &self,
        volume: &Arc<Volume>,
        fids: &Fids,
        directory: Fid,
    ) -> Option<Result<CallReply<fs::BulkStatusReply>>> {
        let (sites, token) = (volume.sites(self.now()), self.token_for(volume.cell));
        if !sites.iter().any(|server| self.transfer.lacks_capability(server, token, directory)) {
            return None;
        }
        let resets: Vec<u64> = sites.iter().map(|server| server.reset.get()).collect();
        let wanted = fs::CapabilityRequest {
            fid: directory,
            access: fs::CapabilityAccess::READ,
            drive: fs::OWN_DRIVE,
        };
        match self
            .call_about(volume, ABOUT, fs::StatusAndCapability { fids: fids.clone(), wanted })
            .await
            .result
        {
            Err(error) if error.code == Some(AbortCode::RXGEN_OPCODE) => {
                // Which of several has replied is not known.
                if let ([server], [reset]) = (&sites[..], &resets[..]) {
                    server.no_data_path.note(self.now(), *reset);
                }
                None
            }
            Err(error) => Some(Err(error)),
            Ok(answered) => {
                let CallReply { value, server, serial, started, token, follows } = answered;
                let fs::StatusAndCapabilityReply { statuses, callbacks, sync, outcome } = value;
                self.transfer.capability_came(&server, (token, directory), outcome, started);
                let value = fs::BulkStatusReply { statuses, callbacks, sync };
                Some(Ok(CallReply { value, server, serial, started, token, follows }))
            }
        }
    }
}
