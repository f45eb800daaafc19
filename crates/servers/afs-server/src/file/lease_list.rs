//! LeaseList, a call of our own: a numbered list of changes under a lease, made once (docs/protocol extensions.md "Leases of
//! directories").

use std::sync::Arc;

use afs_rpc::{EnvExt, Table};
use afs_volume::VolumeError;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs;
use afs_wire::ids::Fid;

use super::change::Done;
use super::server::{CallContext, FileServer};
use crate::leases::{Lease, Lists};

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    super::call(table, |server: Arc<FileServer>, context, call: fs::LeaseList| async move {
        // A task of its own: a list that was begun ends, and its reply is kept, also if the call is given up.
        let env = server.env.clone();
        let made = env.spawn_with_result(async move { server.lease_list(&context, call).await });
        made.await.unwrap_or(Err(AbortCode::VRESTARTING))
    })
}

impl FileServer {
    async fn lease_list(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        call: fs::LeaseList,
    ) -> Result<fs::ChangeListReply, AbortCode> {
        let stale = Errno::ESTALE.to_uae();
        let lease = self.leases().held(call.lease, call.dir, context.host.id()).ok_or(stale)?;
        let covered = call.changes.iter().all(|change| lease.covers(change));
        if call.changes.is_empty() || !covered {
            return Err(Errno::EINVAL.to_uae());
        }
        let digest = self.leases().digest(&call.changes);
        let mut lists = lease.lists.lock().await;
        if !lease.holds() {
            return Err(stale);
        }
        if let Some(reply) = lists.reply_to(call.number, digest)? {
            return Ok(reply);
        }
        lease.touch(self.clients.now());
        let reply = self.make_list(context, &lease, &mut lists, call.changes).await?;
        lists.keep(call.number, digest, &reply);
        Ok(reply)
    }

    async fn make_list(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        lease: &Arc<Lease>,
        lists: &mut Lists,
        changes: fs::LeasedChanges,
    ) -> Result<fs::ChangeListReply, AbortCode> {
        let (served, before) = self.volume(context, lease.dir, true)?;
        let (made, changes): (Vec<_>, Vec<_>) = changes
            .into_vec()
            .into_iter()
            .map(|leased| ((leased.object, leased.time), leased.change))
            .unzip();
        let tried = self.tried(&changes);
        let dirs: Vec<Fid> = changes.iter().filter_map(directory_of).collect();
        let mut ready = Vec::with_capacity(changes.len());
        for (made, change) in made.into_iter().zip(changes) {
            ready.push((made, self.ready(context, &served, change).await));
        }
        let (subject, held, mut admitted) = (context.subject.clone(), lease.clone(), false);
        let made = self.change_in_order(
            &served,
            Some(context.host.id()),
            ready,
            move |tx, ((object, time), ready)| {
                // All of a list is in one transaction: a lease that ends is followed by one of its own.
                admitted = admitted || held.holds();
                if !admitted {
                    return Err(VolumeError::Refused(Errno::ESTALE.to_uae()));
                }
                if object != Fid::default() {
                    tx.number_next(object);
                }
                tx.made_at(time);
                let before = tx.header().blocks_used;
                let done: Done = ready.make(tx, &subject).map_err(already_used)?;
                Ok((done, tx.header().blocks_used.saturating_sub(before)))
            },
        );
        let made = made.await?;
        let failed = made.failed.map(|error| self.code(lease.dir, &error));
        let (done, grown): (Vec<_>, Vec<_>) = made.done.into_iter().unzip();
        if let Some(code) = failed.filter(|code| done.is_empty() && is_of_the_volume(*code)) {
            return Err(code);
        }
        if failed.is_none() && !lease.is_wanted() {
            // As single calls: the next lease of a directory, also of one that was made under this one, is earned by them.
            dirs.into_iter().for_each(|dir| self.leases().note_change(dir, context.host.id()));
        }
        if let Some(space) = &mut lists.space {
            space.use_up(grown.iter().sum::<u64>().saturating_mul(1024));
        }
        drop(before);
        Ok(self.list_reply(context, &served, tried, (done, failed), Some(lease.as_ref())).await)
    }
}

/// The directory whose names a change under a lease changes.
fn directory_of(change: &fs::Change) -> Option<Fid> {
    match change {
        fs::Change::Store(_) | fs::Change::StoreStatus(_) => None,
        named => named.fids().first().copied(),
    }
}

/// A lent number that is used twice is the client's fault, and does not say that the lease has ended.
fn already_used(error: VolumeError) -> VolumeError {
    match error {
        VolumeError::NotLent => VolumeError::Invalid,
        other => other,
    }
}

/// Whether a code says nothing of a change, but that none can be made now.
fn is_of_the_volume(code: AbortCode) -> bool {
    let of_volume = [AbortCode::VBUSY, AbortCode::VOFFLINE, AbortCode::VMOVED, AbortCode::VNOVOL];
    of_volume.contains(&code) || code == Errno::ESTALE.to_uae()
}
