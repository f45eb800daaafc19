//! GetLayout: asked once for all who wait for the same.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_rpc::{CallError, EnvExt};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs;
use afs_wire::rpc::Request;

use super::super::capabilities::Given;
use super::super::fallback::Fallback;
use super::super::grants::WAIT;
use super::super::opening::CALL_MAX;
use super::super::steps::Ended;
use super::layout::{Asked, Layout};
use super::layouts::{Key, Lookup, Refused};
use super::server_drives::ServerDrives;
use super::sites::Standing;
use crate::calls::Target;

impl ServerDrives {
    /// The layout of a file for a position, if there is one in time whose capabilities are good.
    pub(super) async fn layout(
        self: &Arc<Self>,
        target: &Target,
        key: Key,
        at: u64,
    ) -> Result<Arc<Layout>, Ended> {
        let until = self.now() + WAIT;
        loop {
            let changed = self.changed.notified();
            if self.server.has_no_layouts(self.now()) {
                return Err(Ended::NoPath);
            }
            let found = self.layouts.lock().look_up(key, at, self.now());
            match found {
                Lookup::Here(layout) => match self.stand(target, &layout) {
                    Standing::Good | Standing::Due => return Ok(layout),
                    Standing::Ended | Standing::Asked => {}
                    Standing::Void => {
                        self.layouts.lock().failed(key);
                        continue;
                    }
                },
                Lookup::None => return Err(Ended::NoPath),
                Lookup::Missing(start) => self.ask_for(target, key, start),
                Lookup::Asked => {}
            }
            let left = until.saturating_since(self.now());
            if self.common.env.timeout(left, changed).await.is_err() {
                return Err(Ended::Fallback(self.fallback(Fallback::NoLayout)));
            }
        }
    }

    fn ask_for(self: &Arc<Self>, target: &Target, key: Key, start: u64) {
        let (me, target) = (self.clone(), target.clone());
        self.common.env.spawn(Box::pin(async move {
            let reply = me.get_layout(&target, key, start).await;
            me.layouts.lock().answered(key, reply, me.now());
            me.changed.notify_waiters();
        }));
    }

    async fn get_layout(&self, target: &Target, key: Key, start: u64) -> Result<Layout, Refused> {
        self.common.counters.call(fs::GetLayout::NAME);
        let reset = self.server.reset.get();
        let (token, fid, version) = key;
        let buckets = self.common.objects.is_some();
        let asked = Asked { start, called: target.address.peer.ip(), at: self.now(), buckets };
        let request = fs::GetLayout { fid, version, start, end: i64::MAX as u64 };
        match self.common.env.timeout(CALL_MAX, target.connection.call(&request)).await {
            Ok(Ok(reply)) => {
                let site = |offer, given| {
                    let number = self.given.fetch_add(1, Ordering::Relaxed);
                    self.sites.lock().given((token, fid), offer, Given { number, ..given })
                };
                Layout::new(&reply, &asked, &self.common.config, site).ok_or(Refused::File)
            }
            Ok(Err(CallError::Abort(AbortCode::RXGEN_OPCODE))) => {
                self.server.no_layouts.note(self.now(), reset);
                Err(Refused::File)
            }
            Ok(Err(CallError::Abort(code))) if code == Errno::EOPNOTSUPP.to_uae() => Err(Refused::Volume),
            _ => Err(Refused::File),
        }
    }
}
