//! Background removal of unfinished volumes, and periodic write-back of use counts.

use std::sync::Arc;

use super::VolumeServer;
use super::transactions::Transaction;
use crate::volume_states::{Site, UseNow, is_published};

impl VolumeServer {
    /// Removes, in the background, volumes that an earlier process left unfinished and that can no longer be
    /// completed: their transactions are gone.
    pub(super) fn purge_unfinished(self: &Arc<Self>) {
        let unfinished = self.partitions.iter().flat_map(|(partition, store)| {
            let volumes = store.volumes().into_iter().filter(|volume| !is_published(&volume.header()));
            volumes.map(move |volume| Site { volume: volume.id(), partition })
        });
        let unfinished: Vec<Site> = unfinished.collect();
        if unfinished.is_empty() {
            return;
        }
        let server = Arc::downgrade(self);
        self.env.spawn(Box::pin(async move {
            for site in unfinished {
                let Some(server) = server.upgrade() else { return };
                // A new transaction may hold it already, to finish or to remove it.
                if let Ok(_hidden) = server.enter_hidden(site, "Purge") {
                    server.purge_if_unfinished(site).await;
                }
            }
        }));
    }

    /// Removes the volume that a transaction created, if the transaction ended without publishing it. The
    /// holder of a later transaction on it may still finish it.
    pub(super) async fn purge_what_it_made(self: &Arc<Self>, ended: &Transaction) {
        if !ended.made || ended.deleted {
            return;
        }
        if let Ok(_hidden) = self.enter_hidden(ended.site(), "Purge") {
            self.purge_if_unfinished(ended.site()).await;
        }
    }

    /// Removes a volume that was never published.
    pub(super) async fn purge_if_unfinished(&self, site: Site) {
        let volume = self.partitions.store(site.partition).and_then(|store| store.volume(site.volume));
        if volume.is_none_or(|volume| is_published(&volume.header())) {
            return;
        }
        tracing::info!(volume = %site.volume, "a volume that was never finished is removed");
        if let Err(code) = self.erase(site).await {
            tracing::error!(volume = %site.volume, %code, "a volume that was never finished cannot be removed");
        }
    }

    /// Writes use counts into the headers of volumes.
    pub(super) async fn keep_uses(&self) {
        let now = self.now();
        for (id, counted) in self.states.uses().take() {
            let Some(partition) = self.partitions.partition_of(id) else { continue };
            let site = Site { volume: id, partition };
            let kept = self.edit(site, move |tx| {
                let header = tx.edit_header();
                UseNow::of(header).with(counted, now).put(header);
            });
            // Counts that cannot be written are only worth a log line.
            if let Err(code) = kept.await {
                tracing::debug!(volume = %id, %code, "the use of a volume is not written down");
            }
        }
    }
}
