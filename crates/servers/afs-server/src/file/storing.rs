//! Storing data of a file, independent of the transport: a ticket is created, fed and ended
//! ([`super::ticket`]).
//!
//! The bytes are written to the drive as they arrive, in bounded memory; one transaction then makes them the
//! file's. A client that sends fewer than it announced, or falls silent, changes nothing, and holds memory
//! and space for a bounded time ([`super::stores`]).

use std::net::IpAddr;
use std::sync::Arc;

use afs_rpc::ServerCall;
use afs_volume::{NewData, StoreData, VnodeRecord, VolumeError, VolumeHeader, VolumeTx};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{SetStatus, StatusReply};
use afs_wire::ids::Fid;

use super::broken::Broken;
use super::object::{Found, actor, check_within, is_file};
use super::server::FileServer;
use super::status::ChangedBy;
use super::store_change::Change;
use super::stores::SpaceHeld;
use super::ticket::{Owner, Ticket, TicketId};
use crate::access::Operation;
use crate::call_context::CallContext;
use crate::flow::Source;
use crate::subject::Subject;
use crate::volume_states::Served;

/// Abort code for a client that sent fewer bytes than it announced, or sent them too slowly
/// (docs/protocol fileserver.md "4. Data framing on the split calls").
pub(crate) const SHORT_DATA: AbortCode = AbortCode(-32);
/// Abort code for a ticket that has ended, or never existed.
pub(super) const NO_TICKET: Errno = Errno::ESTALE;
/// KiB by which a store in progress may overrun the quota (docs/protocol fileserver.md "11. Quota and
/// space").
pub(super) const SPARE: u64 = 1024;

/// The file that a store is for, as it was found when the store began.
pub(crate) struct StoreTarget {
    pub(crate) served: Served,
    pub(crate) header: Arc<VolumeHeader>,
    pub(crate) record: Arc<VnodeRecord>,
}

impl Found {
    /// The same as the target of a store.
    pub(super) fn target(self) -> StoreTarget {
        StoreTarget { served: self.served, header: self.header, record: self.record }
    }
}

/// Whether files may grow by so many KiB, or slightly less.
fn check_room(header: &VolumeHeader, growth: u64) -> Result<(), AbortCode> {
    let (growth, quota) = (growth.saturating_sub(SPARE), u64::from(header.max_quota));
    if growth > 0 && quota != 0 && header.blocks_used + growth > quota {
        return Err(AbortCode::VOVERQUOTA);
    }
    Ok(())
}

/// Replies to a call that brings bytes.
pub(super) async fn answer(
    mut call: ServerCall,
    stored: impl AsyncFnOnce(&mut ServerCall) -> Result<StatusReply, AbortCode>,
) -> Result<(), (ServerCall, AbortCode)> {
    match stored(&mut call).await {
        Ok(reply) => {
            // The client is gone if this fails; its data is stored all the same.
            let _ = call.reply(&reply).await;
            Ok(())
        }
        Err(code) => Err((call, code)),
    }
}

impl FileServer {
    /// The file to store into, after a check of the caller's rights.
    pub(super) async fn find_to_store(
        &self,
        context: &CallContext,
        fid: Fid,
        status: &SetStatus,
    ) -> Result<Found, AbortCode> {
        let found = self.find_to_change(context, fid).await?;
        if !is_file(&found.record) {
            return Err(Errno::EISDIR.to_uae());
        }
        found.check(&context.subject, Operation::StoreData(status))?;
        Ok(found)
    }

    /// Takes the bytes of a change and commits it, within one call.
    pub(super) async fn store(
        self: &Arc<Self>,
        source: &mut impl Source,
        context: &Arc<CallContext>,
        found: Found,
        change: Change,
    ) -> Result<StatusReply, AbortCode> {
        let owner = Owner::of(context);
        let ticket = self.begin_store_of(context, &owner, found.target(), change).await?;
        self.feed_store(&owner, ticket, source).await?;
        self.end_store(context, ticket).await
    }

    /// Begins a store by a call. A client that has the file on a lease uses up what is reserved for that.
    async fn begin_store_of(
        &self,
        context: &CallContext,
        owner: &Owner,
        target: StoreTarget,
        change: Change,
    ) -> Result<TicketId, AbortCode> {
        let lent = self.leases().of(change.fid).filter(|lease| lease.host.id() == context.host.id());
        let Some(lease) = lent else { return self.begin_store(owner, context.address, target, change) };
        lease.touch(self.clients.now());
        let mut lists = lease.lists.lock().await;
        self.begin_store_from(owner, context.address, target, change, lists.space.as_mut())
    }

    /// Begins a store by a client at `address` with the right. A store that exceeds the quota is refused
    /// before its bytes travel; otherwise its share of the quota is reserved. The transaction decides
    /// finally.
    pub(crate) fn begin_store(
        &self,
        owner: &Owner,
        address: IpAddr,
        target: StoreTarget,
        change: Change,
    ) -> Result<TicketId, AbortCode> {
        self.begin_store_from(owner, address, target, change, None)
    }

    /// The same with what was reserved before for the changes of a client.
    fn begin_store_from(
        &self,
        owner: &Owner,
        address: IpAddr,
        target: StoreTarget,
        change: Change,
        reserved: Option<&mut SpaceHeld>,
    ) -> Result<TicketId, AbortCode> {
        let StoreTarget { served, header, record } = target;
        let growth = change.growth(&record);
        let volume = change.fid.volume;
        let under_way = self.stores.begin(address, volume, change.len(), growth.saturating_mul(1024))?;
        if let Some(reserved) = reserved {
            reserved.use_up(growth.saturating_mul(1024));
        }
        check_room(&header, under_way.room().growth / 1024)?;
        let ticket = Ticket { served, change, under_way, data: None, staging: None };
        Ok(self.tickets.open(owner.clone(), Box::new(ticket)))
    }

    /// Takes all bytes of a store at once. If they end too early, neither the bytes nor the ticket are kept.
    pub(crate) async fn feed_store(
        &self,
        owner: &Owner,
        id: TicketId,
        source: &mut impl Source,
    ) -> Result<(), AbortCode> {
        let mut ticket = self.tickets.take(id, owner).ok_or(NO_TICKET.to_uae())?;
        if ticket.data.is_some() {
            self.tickets.put(id, owner.clone(), ticket);
            return Err(Errno::EINVAL.to_uae());
        }
        let Ticket { served, change, under_way, .. } = &mut *ticket;
        let data = self.receive(source, served, change, under_way).await?;
        under_way.give_back_memory();
        self.statistics.count_stored_data(data.len());
        ticket.data = Some(data);
        self.tickets.put(id, owner.clone(), ticket);
        Ok(())
    }

    /// Commits the bytes of a store to the file, in one transaction.
    pub(super) async fn end_store(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        id: TicketId,
    ) -> Result<StatusReply, AbortCode> {
        let ticket = self.tickets.take(id, &Owner::of(context)).ok_or(NO_TICKET.to_uae())?;
        self.wait_for(ticket.change.fid.volume, true).await;
        self.commit_change(context, *ticket).await
    }

    pub(super) async fn commit_change(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        ticket: Ticket,
    ) -> Result<StatusReply, AbortCode> {
        let Ticket { served, change, under_way, data, .. } = ticket;
        let Change { fid, status, file_length, expected, .. } = change;
        let data = data.ok_or(SHORT_DATA)?;
        let subject = context.subject.clone();
        served.volume.compact_for(fid, &data).await.map_err(|error| self.code(fid, &error))?;
        // From here on the volume itself accounts for the reserved quota, or the transaction refuses.
        drop(under_way);
        let store = StoreData { fid, file_length, status, expected };
        let holder = Some(context.host.id());
        let changed =
            self.change(&served, holder, fid, move |tx| store_within(tx, &subject, store, data)).await?;
        let mut broken = Broken::default();
        self.change_breaks(fid, &status, &mut broken);
        self.break_promises(context, &mut broken).answered().await;
        Ok(self.status_reply(context, &served.volume.header(), &changed))
    }
}

/// Makes data a file's, if the caller has the right: it may have changed while the bytes arrived.
pub(super) fn store_within(
    tx: &mut VolumeTx<'_, '_>,
    subject: &Subject,
    store: StoreData,
    data: NewData,
) -> Result<ChangedBy, VolumeError> {
    let record = tx.vnode(store.fid)?;
    let acl = check_within(tx, &record, subject, Operation::StoreData(&store.status))?;
    Ok((tx.store_data(store, data, actor(subject))?, acl))
}
