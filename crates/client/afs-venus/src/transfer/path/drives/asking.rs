//! GetLayout: asked once for all who wait for the same, with other files of the directory.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_rpc::{CallError, Elapsed, EnvExt};
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, FileLayout, LayoutOutcome, LayoutRequest, LayoutRequests};
use afs_wire::rpc::Request;

use super::super::capabilities::Given;
use super::super::fallback::{Ended, Fallback};
use super::super::grants::WAIT;
use super::super::offer::Offer;
use super::super::opening::CALL_MAX;
use super::layout::{Asked, Layout};
use super::layouts::{Key, Lookup, Refused};
use super::server_drives::ServerDrives;
use super::sites::{Site, Standing};
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
            if !self.server.may_know_our_calls(self.now()) {
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
                Lookup::Missing(range) => self.ask_for(target, key, range),
                Lookup::Asked => {}
            }
            let left = until.saturating_since(self.now());
            if self.common.env.timeout(left, changed).await.is_err() {
                return Err(Ended::Fallback(self.fallback(Fallback::NoLayout)));
            }
        }
    }

    fn ask_for(self: &Arc<Self>, target: &Target, key: Key, range: Range<u64>) {
        let (me, target) = (self.clone(), target.clone());
        let others = if range.start == 0 { self.others_than(key) } else { Vec::new() };
        let keys: Vec<Key> = std::iter::once(key).chain(others).collect();
        self.common.env.spawn(Box::pin(async move {
            let replies = me.get_layouts(&target, &keys, range).await;
            keys.iter().zip(replies).for_each(|(key, reply)| me.answered(*key, reply));
            me.changed.notify_waiters();
        }));
    }

    /// Files whose layouts are asked for with that of another; they count as asked for.
    fn others_than(&self, key: Key) -> Vec<Key> {
        let now = self.now();
        let others = self.companions.lock().take(key);
        let mut layouts = self.layouts.lock();
        let mut is_missing =
            |key: Key| !layouts.is_known(key) && matches!(layouts.look_up(key, 0, now), Lookup::Missing(_));
        others.into_iter().filter(|key| is_missing(*key)).collect()
    }

    fn answered(&self, key: Key, reply: Result<Layout, Refused>) {
        if reply.is_ok() {
            self.companions.lock().given(key);
        }
        self.layouts.lock().answered(key, reply, self.now());
    }

    /// Why there is no layout, of a call that has failed; `reset` is the number of the last break of all promises before it.
    fn refused<T>(&self, failed: Result<Result<T, CallError>, Elapsed>, reset: u64) -> Refused {
        match failed {
            Ok(Err(CallError::Abort(AbortCode::RXGEN_OPCODE))) => {
                self.server.no_calls_of_ours.note(self.now(), reset);
                Refused::File
            }
            Ok(Err(CallError::Abort(code))) => Refused::by(code),
            _ => Refused::File,
        }
    }

    /// The layouts of a range of each of some files, in their order, of which the first is wanted now.
    async fn get_layouts(
        &self,
        target: &Target,
        keys: &[Key],
        Range { start, end }: Range<u64>,
    ) -> Vec<Result<Layout, Refused>> {
        self.common.counters.call(fs::GetLayout::NAME);
        let reset = self.server.reset.get();
        let asked = self.asked(target, start);
        let wanted = |(_, fid, version): &Key| LayoutRequest { fid: *fid, version: *version, start, end };
        let request = fs::GetLayout { wanted: LayoutRequests::first_of(keys.iter().map(wanted)) };
        let outcomes = match self.common.env.timeout(CALL_MAX, target.connection.call(&request)).await {
            Ok(Ok(reply)) if reply.outcomes.len() == keys.len() => reply.outcomes.into_vec(),
            failed => {
                let refused = self.refused(failed, reset);
                return keys.iter().map(|_| Err(refused)).collect();
            }
        };
        let layout = |(key, outcome): (&Key, LayoutOutcome)| {
            self.checked(*key, &asked, &outcome.into_layout().map_err(Refused::by)?)
        };
        keys.iter().zip(outcomes).map(layout).collect()
    }

    fn asked(&self, target: &Target, start: u64) -> Asked {
        let buckets = self.common.objects.is_some();
        Asked { start, called: target.address.peer.ip(), at: self.now(), buckets }
    }

    fn site(&self, key: Key, offer: Offer, given: Given) -> Option<Arc<Site>> {
        let number = self.given.fetch_add(1, Ordering::Relaxed);
        self.sites.lock().given((key.0, key.1), offer, Given { number, ..given })
    }

    fn checked(&self, key: Key, asked: &Asked, reply: &FileLayout) -> Result<Layout, Refused> {
        let site = |offer, given| self.site(key, offer, given);
        Layout::new(reply, asked, &self.common.config, site).ok_or(Refused::File)
    }
}
