//! Recall of leases before a call that concerns what is lent, and their end (docs/protocol extensions.md "Leases of
//! directories").
//!
//! A call waits where it looks an object up. What it finds by a name, and what is lent after its look-up, its transaction
//! finds: [`Unlent`]. A promise is not granted on what is lent: `Leases::unless_lent`.

use std::sync::{Arc, Weak};
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::future::join_all;
use afs_volume::{VolumeError, VolumeHeader, VolumeTx};
use afs_wire::error::AbortCode;
use afs_wire::ids::{Fid, Rights, VolumeId};
use parking_lot::Mutex;

use super::server::FileServer;
use crate::call_context::CallContext;
use crate::hosts::HostId;
use crate::leases::{Bar, Lease, Leases};
use crate::volume_states::Served;

/// Leases of one object that one call waits for, one after the other.
const RECALLS_MAX: usize = 3;
/// Time between sweeps, and seconds without a list after which a lease is recalled.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
const IDLE_SECONDS: u64 = 300;

/// Check within a transaction that it changes no object that is leased to another client.
#[derive(Clone)]
pub(super) struct Unlent {
    leases: Arc<Leases>,
    holder: Option<HostId>,
    found: Arc<Mutex<Option<Arc<Lease>>>>,
}

impl Unlent {
    pub(super) fn new(leases: &Arc<Leases>, holder: Option<HostId>) -> Self {
        Unlent { leases: leases.clone(), holder, found: Arc::default() }
    }

    /// The result of a change, unless it depends on what is lent: a directory that is not empty here may be so for its holder.
    pub(super) fn check<T>(
        &self,
        tx: &VolumeTx<'_, '_>,
        done: Result<T, VolumeError>,
    ) -> Result<T, VolumeError> {
        let volume = tx.header().id;
        let lease = match &done {
            Ok(_) => self.leases.of_others_by_number(volume, tx.changed(), self.holder),
            Err(VolumeError::NotEmpty) => self.leases.of_others_by_number(volume, tx.seen(), self.holder),
            Err(_) => None,
        };
        match lease {
            None => done,
            Some(lease) => {
                *self.found.lock() = Some(lease);
                Err(VolumeError::Refused(AbortCode::VBUSY))
            }
        }
    }

    /// Whether a lease was found.
    pub(super) fn has_found(&self) -> bool {
        self.found.lock().is_some()
    }
}

impl FileServer {
    pub(crate) fn leases(&self) -> &Arc<Leases> {
        self.clients.leases()
    }

    /// The volume of objects, as [`FileServer::volume`], when no other client has a lease of one of them.
    pub(super) async fn unlent_volume(
        &self,
        context: &CallContext,
        fids: &[Fid],
        change: bool,
    ) -> Result<(Served, Arc<VolumeHeader>), AbortCode> {
        let fid = fids.first().copied().unwrap_or_default();
        let (served, header) = self.volume(context, fid, change)?;
        let holder = Some(context.host.id());
        if !fids.iter().any(|fid| self.leases().concern(*fid, holder)) {
            return Ok((served, header));
        }
        let recalls = fids.iter().map(|fid| self.recall_for(context, &served, &header, *fid));
        join_all(recalls).await.into_iter().collect::<Result<(), _>>()?;
        // The volume may have gone meanwhile.
        self.volume(context, fid, change)
    }

    /// Recalls the leases of many objects at the same time, before each of them is looked up.
    pub(super) async fn recall_many(&self, context: &CallContext, fids: impl Iterator<Item = Fid>) {
        let concerned = fids.filter(|fid| self.leases().concern(*fid, Some(context.host.id())));
        join_all(concerned.map(async |fid| self.unlent_volume(context, &[fid], false).await)).await;
    }

    /// A caller without any right to a directory gets nothing of it, and so takes no lease from anybody.
    async fn recall_for(
        &self,
        context: &CallContext,
        served: &Served,
        header: &Arc<VolumeHeader>,
        fid: Fid,
    ) -> Result<(), AbortCode> {
        let holder = Some(context.host.id());
        let lent_with = self.leases().of_others(fid, holder).map_or(fid, |lease| lease.dir);
        let Ok(found) = self.found(served.clone(), header.clone(), lent_with).await else { return Ok(()) };
        let rights = found.rights(&context.subject);
        if rights == Rights::NONE {
            return Ok(());
        }
        self.recall_from_others(fid, holder).await
    }

    /// Waits until nobody but `holder` has a lease of an object.
    pub(crate) async fn recall_from_others(&self, fid: Fid, holder: Option<HostId>) -> Result<(), AbortCode> {
        self.leases().note_use(fid, holder);
        for _ in 0..RECALLS_MAX {
            let Some(lease) = self.leases().of_others(fid, holder) else { return Ok(()) };
            self.recall(&lease).await;
        }
        // Somebody borrows it again and again.
        Err(AbortCode::VBUSY)
    }

    /// Recalls the lease that a transaction has found.
    pub(super) async fn recall_found(&self, unlent: &Unlent) {
        let found = unlent.found.lock().clone();
        if let Some(lease) = found {
            self.leases().note_use(lease.dir, unlent.holder);
            self.recall(&lease).await;
        }
    }

    /// Recalls a lease, and ends it.
    async fn recall(&self, lease: &Arc<Lease>) {
        lease.want();
        let _turn = lease.turn.lock().await;
        let is_over = !lease.holds() || self.clients.recall(lease).await;
        if !is_over {
            tracing::info!(dir = %lease.dir, host = %lease.host.destination(), "a client lost a lease");
        }
        self.end_lease(lease, is_over).await;
    }

    /// Ends a lease: when this returns no list is made under it, and what was lent has been taken back durably. Its series ends too if it
    /// `is_over` for its holder; otherwise the holder asks what became of its last list.
    pub(super) async fn end_lease(&self, lease: &Arc<Lease>, is_over: bool) {
        lease.stop();
        let mut lists = lease.lists.lock().await;
        if lists.over {
            return;
        }
        let fids = lease.fids();
        let store = self.partitions.store(lease.site.partition);
        if let Some(volume) = store.and_then(|store| store.volume(lease.site.volume)) {
            // Also when nothing is left to take back: a list that was admitted before is durable when this is.
            let series = lease.id.into();
            let taken = volume.update(move |tx| {
                if is_over {
                    tx.end_series(series);
                }
                tx.take_back(&fids)
            });
            let taken = taken.await;
            if let Err(error) = taken {
                // They are taken back when the store is opened the next time.
                tracing::warn!(dir = %lease.dir, %error, "vnode numbers that were lent stay so for now");
            }
        }
        self.leases().remove(lease);
        lists.end();
    }

    /// Recalls all leases of a volume. None is lent until the bar is dropped.
    pub(crate) async fn recall_volume(&self, volume: VolumeId) -> Bar {
        let (bar, leases) = self.leases().bar(volume);
        join_all(leases.iter().map(|lease| self.recall(lease))).await;
        bar
    }

    /// Recalls all leases, and lends no more directories: for an orderly stop, while the services still receive calls.
    pub async fn recall_leases(&self) {
        self.leases().close();
        join_all(self.leases().all().iter().map(|lease| self.recall(lease))).await;
    }

    /// Recalls leases that are not used, for as long as the server lives.
    pub(crate) fn start_sweeping_leases(self: &Arc<Self>) {
        let (env, server) = (self.env.clone(), Arc::downgrade(self));
        self.env.spawn(Box::pin(async move {
            loop {
                env.sleep(SWEEP_INTERVAL).await;
                let Some(server) = Weak::upgrade(&server) else { return };
                let (now, leases) = (server.clients.now(), server.leases().all());
                let idle = |lease: &&Arc<Lease>| {
                    !lease.holds() || lease.host.is_removed() || lease.idle(now) > IDLE_SECONDS
                };
                join_all(leases.iter().filter(idle).map(|lease| server.recall(lease))).await;
            }
        }));
    }
}
