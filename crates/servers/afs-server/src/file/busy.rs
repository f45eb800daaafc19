//! Bounded wait of calls for a busy volume, before they are refused.
//!
//! The volume service makes a volume busy for moments: to clone it, or to switch to the server it moves to. A
//! client that is refused waits long before it retries: 15 s, in OpenAFS's cache manager (docs/protocol
//! fileserver.md "10. Volume states as seen by calls").

use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::future::select;
use afs_wire::ids::VolumeId;

use super::server::FileServer;
use crate::audit::{AuditObject, CallKind};

/// How long a call waits. The client's connection stays alive meanwhile, and no client time-out is shorter.
const PATIENCE: Duration = Duration::from_secs(5);

impl FileServer {
    /// Waits for the volume of a call's object.
    pub(super) async fn wait_for_object(&self, object: &AuditObject, kind: CallKind) {
        let volume = match object {
            AuditObject::Fid(fid) | AuditObject::Entry(fid, _) | AuditObject::Moved([(fid, _), _]) => {
                fid.volume
            }
            AuditObject::Volume(volume) => *volume,
            _ => return,
        };
        self.wait_for(volume, kind.changes()).await;
    }

    /// Waits until a volume is not busy, or the time is up. The caller checks its state in either case.
    pub(crate) async fn wait_for(&self, volume: VolumeId, change: bool) {
        if self.states.is_busy(&self.partitions, volume, change) {
            let calm = self.states.calm(&self.partitions, volume, change);
            select(calm, self.env.sleep(PATIENCE)).await;
        }
    }
}
