//! Volume service call that writes a volume from a dump.

use std::sync::Arc;

use afs_rpc::{ServerCall, Table};
use afs_volume::restore::{RestoreAs, RestoreError, RestoreStream};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::VolumeId;
use afs_wire::rpc::Nothing;
use afs_wire::vol;

use super::{VolumeServer, errno, new_name};
use crate::call_context::untranslated;
use crate::flow::{Broken, Source};
use crate::guard::administrators_streamed;
use crate::volume_states::is_published;

/// Bytes taken from the transport at a time.
const PIECE: usize = 256 << 10;

pub(super) fn add(table: Table<VolumeServer>) -> Table<VolumeServer> {
    administrators_streamed(
        table,
        |server: Arc<VolumeServer>, mut call: ServerCall, request: vol::Restore| async move {
            match server.restore(&mut call, &request).await {
                Ok(()) => {
                    // The client is gone if this fails; the volume is restored all the same.
                    let _ = call.reply(&()).await;
                    Ok(())
                }
                Err(code) => Err((call, code)),
            }
        },
    )
}

impl VolumeServer {
    /// The new content is invisible until it is complete; a failure leaves the volume unchanged.
    pub(super) async fn restore(
        self: &Arc<Self>,
        from: &mut impl Source,
        request: &vol::Restore,
    ) -> Result<Nothing, AbortCode> {
        let work = self.enter(request.transaction, "Restore")?;
        let failed = |error: RestoreError| self.restore_code(work.id(), &error);
        let volume = work.volume_to_change()?;
        // A published volume shows the new content as it showed the old, whether or not the client lives to
        // say so.
        let keep_service = is_published(&volume.header());
        let mut restore = RestoreStream::new(volume, restore_as(&request.cookie, keep_service)?);
        loop {
            // Nothing is kept of a client that falls silent, or is gone.
            let pieces = from.next(PIECE).await.map_err(|Broken| AbortCode::VOLSERREAD_DUMPERROR)?;
            if pieces.is_empty() {
                break;
            }
            for piece in pieces {
                restore.push(piece).await.map_err(failed)?;
            }
        }
        restore.finish().await.map_err(failed)?;
        self.announce_change(work.id());
        Ok(())
    }
}

impl VolumeServer {
    fn restore_code(&self, volume: VolumeId, error: &RestoreError) -> AbortCode {
        tracing::warn!(%volume, %error, "a dump is not restored");
        untranslated(error.code())
    }
}

fn restore_as(cookie: &vol::RestoreCookie, keep_service: bool) -> Result<RestoreAs, AbortCode> {
    Ok(RestoreAs {
        name: new_name(cookie.name.text())?,
        kind: cookie.kind.check().ok_or(errno(Errno::EINVAL))?,
        parent: cookie.parent,
        clone: cookie.clone,
        keep_usage: true,
        keep_service,
    })
}
