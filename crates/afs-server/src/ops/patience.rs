//! Calls to a volume that is busy wait for it, some seconds at most, before they are turned away.
//!
//! The volume service takes a volume for moments: to clone it, or to switch to the server it moves to. A client that is
//! told so waits long: 15 s, in OpenAFS's cache manager (docs/protocol fileserver.md "10. Volume states as seen by calls").

use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::future::select;
use afs_wire::ids::VolumeId;

use crate::audit::{AuditObject, CallKind};
use crate::server::FileServer;

/// How long a call waits. A client hears from the server all the while, and has no limit that is shorter.
const PATIENCE: Duration = Duration::from_secs(5);

impl FileServer {
    /// Waits for the volume that a call is about.
    pub(super) async fn wait_for_object(&self, object: &AuditObject, kind: CallKind) {
        let volume = match object {
            AuditObject::Fid(fid) | AuditObject::Entry(fid, _) | AuditObject::Moved([(fid, _), _]) => {
                fid.volume
            }
            AuditObject::Volume(volume) => *volume,
            _ => return,
        };
        self.wait_for(volume, kind == CallKind::Change).await;
    }

    /// Waits until a volume is not busy, or has been for too long. The caller looks at its state all the same.
    pub(super) async fn wait_for(&self, volume: VolumeId, change: bool) {
        if self.states.is_busy(&self.partitions, volume, change) {
            let calm = self.states.calm(&self.partitions, volume, change);
            select(calm, self.env.sleep(PATIENCE)).await;
        }
    }
}
