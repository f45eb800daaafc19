//! GetLayout, GetLayoutList and GetLayouts: asked once for all who wait for the same.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_rpc::{CallError, EnvExt};
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, LayoutOutcome, LayoutRequest, LayoutRequests};
use afs_wire::rpc::Request;

use super::super::capabilities::Given;
use super::super::fallback::{Ended, Fallback};
use super::super::grants::WAIT;
use super::super::offer::Offer;
use super::super::opening::CALL_MAX;
use super::layout::{Asked, Layout};
use super::layouts::{Key, Lookup, Refused, Windows};
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
            if self.server.has_no_layouts(self.now()) {
                return Err(Ended::NoPath);
            }
            let windows = self.windows();
            let found = self.layouts.lock().look_up(key, at, windows, self.now());
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

    /// The ranges for which layouts are asked for: a server that knows no lists tells of 64 MiB at a time.
    fn windows(&self) -> Windows {
        if self.server.may_list_layouts(self.now()) { Windows::Growing } else { Windows::Equal }
    }

    fn ask_for(self: &Arc<Self>, target: &Target, key: Key, range: Range<u64>) {
        let (me, target) = (self.clone(), target.clone());
        let others = if range.start == 0 { self.others_than(key) } else { Vec::new() };
        self.common.env.spawn(Box::pin(async move {
            if others.is_empty() || !me.ask_for_all(&target, key, &others).await {
                let reply = me.get_any_layout(&target, key, range).await;
                me.answered(key, reply);
            }
            me.changed.notify_waiters();
        }));
    }

    /// Files whose layouts are asked for with that of another; they count as asked for.
    fn others_than(&self, key: Key) -> Vec<Key> {
        let now = self.now();
        if !self.server.may_give_layouts_in_bulk(now) {
            return Vec::new();
        }
        let others = self.companions.lock().take(key);
        let mut layouts = self.layouts.lock();
        let windows = self.windows();
        let mut is_missing = |key: Key| {
            !layouts.is_known(key) && matches!(layouts.look_up(key, 0, windows, now), Lookup::Missing(_))
        };
        others.into_iter().filter(|key| is_missing(*key)).collect()
    }

    /// Asks for several in one call. False if the server does not know it.
    async fn ask_for_all(&self, target: &Target, key: Key, others: &[Key]) -> bool {
        let keys: Vec<Key> = std::iter::once(key).chain(others.iter().copied()).collect();
        match self.get_layouts(target, &keys).await {
            Some(replies) => {
                keys.iter().zip(replies).for_each(|(key, reply)| self.answered(*key, reply));
                true
            }
            None => {
                others.iter().for_each(|key| self.layouts.lock().not_asked(*key));
                false
            }
        }
    }

    fn answered(&self, key: Key, reply: Result<Layout, Refused>) {
        if reply.is_ok() {
            self.companions.lock().given(key);
        }
        self.layouts.lock().answered(key, reply, self.now());
    }

    /// The layout of a range: behind the beginning of a file as a list, if the server knows lists.
    async fn get_any_layout(&self, target: &Target, key: Key, range: Range<u64>) -> Result<Layout, Refused> {
        if range.start > 0
            && self.server.may_list_layouts(self.now())
            && let Some(reply) = self.get_layout_list(target, key, range.clone()).await
        {
            return reply;
        }
        self.get_layout(target, key, range).await
    }

    /// `None` if the server does not know lists, or a drive of the file does not.
    async fn get_layout_list(
        &self,
        target: &Target,
        key: Key,
        Range { start, end }: Range<u64>,
    ) -> Option<Result<Layout, Refused>> {
        self.common.counters.call(fs::GetLayoutList::NAME);
        let reset = self.server.reset.get();
        let (_, fid, version) = key;
        let asked = self.asked(target, start);
        let request = fs::GetLayoutList { fid, version, start, end };
        Some(match self.common.env.timeout(CALL_MAX, target.connection.call(&request)).await {
            Ok(Ok(reply)) => {
                let site = |offer, given| self.site(key, offer, given);
                Layout::of_lists(&reply, &asked, &self.common.config, site).ok_or(Refused::File)
            }
            Ok(Err(CallError::Abort(AbortCode::RXGEN_OPCODE))) => {
                self.server.no_layout_lists.note(self.now(), reset);
                return None;
            }
            Ok(Err(CallError::Abort(code))) => Err(Refused::by(code)),
            _ => Err(Refused::File),
        })
    }

    async fn get_layout(
        &self,
        target: &Target,
        key: Key,
        Range { start, end }: Range<u64>,
    ) -> Result<Layout, Refused> {
        self.common.counters.call(fs::GetLayout::NAME);
        let reset = self.server.reset.get();
        let (_, fid, version) = key;
        let asked = self.asked(target, start);
        let request = fs::GetLayout { fid, version, start, end };
        match self.common.env.timeout(CALL_MAX, target.connection.call(&request)).await {
            Ok(Ok(reply)) => self.checked(key, &asked, &reply),
            Ok(Err(CallError::Abort(AbortCode::RXGEN_OPCODE))) => {
                self.server.no_layouts.note(self.now(), reset);
                Err(Refused::File)
            }
            Ok(Err(CallError::Abort(code))) => Err(Refused::by(code)),
            _ => Err(Refused::File),
        }
    }

    /// The layouts of files in their order, of which the first is wanted now; `None` if the server gives one for each call.
    async fn get_layouts(&self, target: &Target, keys: &[Key]) -> Option<Vec<Result<Layout, Refused>>> {
        self.common.counters.call(fs::GetLayouts::NAME);
        let reset = self.server.reset.get();
        let asked = self.asked(target, 0);
        let wanted = keys.iter().map(|(_, fid, version)| LayoutRequest { fid: *fid, version: *version });
        let request = fs::GetLayouts { wanted: LayoutRequests::first_of(wanted) };
        let outcomes = match self.common.env.timeout(CALL_MAX, target.connection.call(&request)).await {
            Ok(Ok(reply)) if reply.outcomes.len() == keys.len() => reply.outcomes.into_vec(),
            Ok(Err(CallError::Abort(AbortCode::RXGEN_OPCODE))) => {
                self.server.single_layouts_only.note(self.now(), reset);
                return None;
            }
            _ => return Some(keys.iter().map(|_| Err(Refused::File)).collect()),
        };
        let layout = |(key, outcome): (&Key, LayoutOutcome)| {
            self.checked(*key, &asked, &outcome.into_reply().map_err(Refused::by)?)
        };
        Some(keys.iter().zip(outcomes).map(layout).collect())
    }

    fn asked(&self, target: &Target, start: u64) -> Asked {
        let buckets = self.common.objects.is_some();
        Asked { start, called: target.address.peer.ip(), at: self.now(), buckets }
    }

    fn site(&self, key: Key, offer: Offer, given: Given) -> Option<Arc<Site>> {
        let number = self.given.fetch_add(1, Ordering::Relaxed);
        self.sites.lock().given((key.0, key.1), offer, Given { number, ..given })
    }

    fn checked(&self, key: Key, asked: &Asked, reply: &fs::GetLayoutReply) -> Result<Layout, Refused> {
        let site = |offer, given| self.site(key, offer, given);
        Layout::new(reply, asked, &self.common.config, site).ok_or(Refused::File)
    }
}
