//! TakeLease and ReturnLease, calls of our own (docs/protocol extensions.md "Leases of directories").

use std::collections::BTreeSet;
use std::sync::Arc;

use afs_rpc::{EnvExt, Table};
use afs_volume::{VolumeHeader, VolumeTx};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, LENT_MAX, LeaseId, LentFids};
use afs_wire::ids::{Fid, Rights};
use afs_wire::rpc::Nothing;

use super::change_list::sender;
use super::object::{Found, check_within, sync};
use super::server::FileServer;
use super::stores::SpaceHeld;
use crate::access::Operation;
use crate::call_context::CallContext;
use crate::callbacks::Grant;
use crate::leases::Lease;

/// What the caller needs in the directory.
const RIGHTS: [Rights; 4] = [Rights::LOOKUP, Rights::INSERT, Rights::DELETE, Rights::WRITE];
/// Most bytes of quota that are reserved for one lease, and for each fid that is lent with it: many leases with few fids reserve little.
const SPACE_MAX: u64 = 16 << 20;
const SPACE_OF_FID: u64 = SPACE_MAX / LENT_MAX as u64;

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    let table = super::call(table, |server: Arc<FileServer>, context, call: fs::TakeLease| async move {
        server.take_lease(&context, &call).await
    });
    let table = super::call(table, |server: Arc<FileServer>, context, call: fs::LendMore| async move {
        // A task of its own: what was lent is counted, also if the call is given up.
        let env = server.env.clone();
        let lent = env.spawn_with_result(async move { server.lend_more(&context, &call).await });
        lent.await.unwrap_or(Err(AbortCode::VRESTARTING))
    });
    super::call(table, |server: Arc<FileServer>, context, call: fs::ReturnLease| async move {
        server.return_lease(&context, &call).await
    })
}

/// A lease that is being lent. Dropped before it is, it ends.
struct Lending {
    server: Arc<FileServer>,
    lease: Arc<Lease>,
    lent: bool,
}

impl Drop for Lending {
    fn drop(&mut self) {
        if !self.lent {
            self.lease.stop();
            let (server, lease) = (self.server.clone(), self.lease.clone());
            self.server.env.spawn(Box::pin(async move { server.end_lease(&lease, true).await }));
        }
    }
}

impl FileServer {
    async fn take_lease(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        call: &fs::TakeLease,
    ) -> Result<fs::TakeLeaseReply, AbortCode> {
        let count = call.files as usize + call.directories as usize;
        if count == 0 || count > LENT_MAX {
            return Err(Errno::EINVAL.to_uae());
        }
        let found = self.find_to_lend(context, call.dir).await?;
        self.return_held(context, call.dir).await;
        if !self.may_be_lent(context, call.dir) {
            return Err(Errno::EAGAIN.to_uae());
        }
        let (id, now) = (LeaseId(self.env.random_u64()), self.clients.now());
        let lease = Lease::new(id, call.dir, found.served.site, context.host.clone(), now);
        let lease = self.leases().begin(lease, count).ok_or(Errno::EAGAIN.to_uae())?;
        let mut lending = Lending { server: self.clone(), lease: lease.clone(), lent: false };
        // Whoever recalls it waits until it is lent, or is not.
        let _turn = lease.turn.lock().await;
        let reply = self.lend(context, &lease, call).await?;
        if lease.is_wanted() || !self.clients.callbacks().holds(call.dir, context.host.id()) {
            return Err(Errno::EAGAIN.to_uae());
        }
        lending.lent = true;
        Ok(reply)
    }

    /// A directory in which the caller may do all that a lease is for. Nobody's lease is recalled for this.
    async fn find_to_lend(&self, context: &CallContext, dir: Fid) -> Result<Found, AbortCode> {
        let (served, header) = self.volume(context, dir, true)?;
        if header.lending == afs_volume::Lending::Off {
            return Err(Errno::EOPNOTSUPP.to_uae());
        }
        let found = self.found(served, header, dir).await?;
        if !found.record.is_directory() {
            return Err(Errno::ENOTDIR.to_uae());
        }
        let rights = found.rights(&context.subject);
        match RIGHTS.iter().all(|right| rights.contains(*right)) {
            true => Ok(found),
            false => Err(Errno::EACCES.to_uae()),
        }
    }

    /// Whether the caller relies on the directory, and is the one that changes it.
    fn may_be_lent(&self, context: &CallContext, dir: Fid) -> bool {
        let host = &context.host;
        self.leases().made_last_changes(dir, host.id())
            && self.clients.callbacks().holds(dir, host.id())
            && self.clients.is_trusted(host)
    }

    /// Breaks the promises of the others, and lends the numbers.
    async fn lend(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        lease: &Arc<Lease>,
        call: &fs::TakeLease,
    ) -> Result<fs::TakeLeaseReply, AbortCode> {
        let (dir, holder) = (call.dir, Some(context.host.id()));
        self.clients.start_breaks(dir, holder).answered().await;
        let found = self.find_to_lend(context, dir).await?;
        // A change that was admitted before it saw the lease is durable, and in the status below, when this is.
        let fids = self.lend_fids(context, lease, &found, [call.files, call.directories], Vec::new()).await?;
        let space = self.reserve(&found.header, call.space.min(most_space(lease)));
        let reserved = space.bytes();
        lease.lists.lock().await.space = Some(space);
        let status = self.fetch_status(context, dir, Grant::Single).await?;
        Ok(fs::TakeLeaseReply {
            lease: lease.id,
            status: status.status,
            callback: status.callback,
            sync: sync(&found.header),
            fids: LentFids::first_of(fids),
            space: reserved,
        })
    }

    /// Lends numbers with a lease in the place of those that are given back.
    async fn lend_fids(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        lease: &Arc<Lease>,
        found: &Found,
        counts: [u32; 2],
        returned: Vec<Fid>,
    ) -> Result<Vec<Fid>, AbortCode> {
        let (dir, subject, taken_back) = (lease.dir, context.subject.clone(), returned.clone());
        let (counts, series) = (counts.map(|count| count as usize), lease.id.into());
        let begun = (lease.lent() == 0).then(|| sender(context));
        let lent = self.change(&found.served, Some(context.host.id()), dir, move |tx| {
            let record = tx.directory(dir)?;
            check_within(tx, &record, &subject, Operation::Insert)?;
            tx.take_back(&taken_back)?;
            begun.map_or(Ok(()), |sender| tx.begin_series(series, sender))?;
            let [files, directories] = within_quota(tx, counts);
            tx.lend(files, directories)
        });
        let fids = lent.await?;
        self.leases().give_back(lease, &returned);
        self.leases().lend(lease, &fids);
        Ok(fids)
    }

    async fn lend_more(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        call: &fs::LendMore,
    ) -> Result<fs::LendMoreReply, AbortCode> {
        let count = call.files as usize + call.directories as usize;
        if count == 0 || count > LENT_MAX {
            return Err(Errno::EINVAL.to_uae());
        }
        let held = self.leases().held(call.lease, call.dir.volume, context.host.id());
        let lease = held.ok_or(Errno::ESTALE.to_uae())?;
        // The end of the lease waits for this, and takes back what is lent here.
        let mut lists = lease.lists.lock().await;
        if !lease.holds() {
            return Err(Errno::ESTALE.to_uae());
        }
        let returned: BTreeSet<Fid> =
            call.returned.iter().copied().filter(|fid| lease.has_lent(*fid)).collect();
        if lease.is_wanted() || !self.leases().have_room(&lease, count, returned.len()) {
            return Err(Errno::EAGAIN.to_uae());
        }
        let found = self.find_to_lend(context, call.dir).await?;
        let (counts, returned) = ([call.files, call.directories], returned.into_iter().collect());
        let fids = self.lend_fids(context, &lease, &found, counts, returned).await?;
        lease.touch(self.clients.now());
        // What was reserved is what the changes may add at most; most add less.
        lists.space.iter_mut().for_each(|held| held.use_up(held.bytes().saturating_sub(call.left)));
        let left = lists.space.as_ref().map_or(0, SpaceHeld::bytes);
        let more = self.reserve(&found.header, call.space.min(most_space(&lease).saturating_sub(left)));
        let space = more.bytes();
        match &mut lists.space {
            Some(left) => left.add(more),
            none => *none = Some(more),
        }
        Ok(fs::LendMoreReply { fids: LentFids::first_of(fids), space })
    }

    /// Reserves quota, of which much is left for others.
    fn reserve(&self, header: &VolumeHeader, wanted: u64) -> SpaceHeld {
        let (quota, used) = (u64::from(header.max_quota), header.blocks_used);
        self.stores.hold_space(header.id, |reserved| {
            let left = (quota.saturating_sub(used) * 1024).saturating_sub(reserved);
            let most = if quota == 0 { SPACE_MAX } else { left / 4 };
            wanted.min(SPACE_MAX).min(most)
        })
    }

    /// Ends the lease of a directory that the caller holds: it has forgotten it.
    async fn return_held(&self, context: &CallContext, dir: Fid) {
        if let Some(lease) = self.leases().of(dir).filter(|lease| lease.host.id() == context.host.id()) {
            self.end_lease(&lease, true).await;
        }
    }

    async fn return_lease(
        &self,
        context: &Arc<CallContext>,
        call: &fs::ReturnLease,
    ) -> Result<Nothing, AbortCode> {
        if let Some(lease) = self.leases().held(call.lease, call.dir.volume, context.host.id()) {
            self.end_lease(&lease, true).await;
            return Ok(());
        }
        // One that was lost: the caller sends nothing more of it.
        self.end_series(context, call).await?;
        Err(Errno::ESTALE.to_uae())
    }

    /// Ends the series of a lease that has ended, if it is the caller's.
    async fn end_series(&self, context: &CallContext, call: &fs::ReturnLease) -> Result<(), AbortCode> {
        let (served, _) = self.volume(context, call.dir, true)?;
        let (series, sender) = (call.lease.into(), sender(context));
        let last = self.read(&served.volume, move |volume| volume.last_list(series)).await;
        let last = last.map_err(|error| self.code(call.dir, &error))?;
        if last.is_some_and(|last| last.sender.holder == sender.holder) {
            let ended = served.volume.update(move |tx| {
                tx.end_series(series);
                Ok(())
            });
            ended.await.map_err(|error| self.code(call.dir, &error))?;
        }
        Ok(())
    }
}

/// Most bytes of quota that are reserved for a lease.
fn most_space(lease: &Lease) -> u64 {
    SPACE_MAX.min(SPACE_OF_FID * lease.lent() as u64)
}

/// As many numbers as the volume can still hold objects.
fn within_quota(tx: &VolumeTx<'_, '_>, [files, directories]: [usize; 2]) -> [usize; 2] {
    let header = tx.header();
    let left = match header.max_files {
        0 => usize::MAX,
        most => u64::from(most).saturating_sub(header.file_count) as usize,
    };
    let directories = directories.min(left);
    [files.min(left - directories), directories]
}
