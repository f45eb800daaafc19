//! Callback service, called by file servers: identity of this client, breaks of promises, and locks that are free.
//!
//! Source: docs/protocol/callback.md. All replies come from memory, whatever calls of this client are in progress,
//! except that the reply to a break waits for the sink, and that about a lock until it was asked for, with a time limit.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use afs_rpc::{Caller, Table};
use afs_wire::cb::{self, InterfaceAddr};
use afs_wire::error::AbortCode;
use afs_wire::fs::{CallBack, capability};
use afs_wire::ids::{Fid, VolumeId};
use afs_wire::rpc::{Opcode, Request, ServiceId};
use afs_wire::xdr::BoundedVec;

use crate::counters::count;
use crate::key::CellIndex;
use crate::venus::{Shared, Venus};

type CallbackResult<T> = std::result::Result<T, AbortCode>;

/// Abort code of debugging calls past the end of a list.
const PAST_THE_END: AbortCode = AbortCode(1);

/// The callback service of a Venus, to which it holds a weak reference.
pub(super) fn service(venus: Weak<Shared>) -> Arc<Table<Weak<Shared>>> {
    let table = Table::new(ServiceId::CALLBACK, Arc::new(venus))
        .call(|venus, caller, request: cb::CallBack| async move {
            call_back(&upgraded(&venus, cb::CallBack::NAME)?, &caller, request).await
        })
        .call(|venus, caller, _: cb::InitCallBackState| async move {
            reset(&upgraded(&venus, cb::InitCallBackState::NAME)?, &caller, None).await
        })
        .call(|venus, caller, request: cb::InitCallBackState3| async move {
            reset(&upgraded(&venus, cb::InitCallBackState3::NAME)?, &caller, Some(request)).await
        })
        .call(|venus, _, request: cb::RecallLease| async move {
            upgraded(&venus, cb::RecallLease::NAME)?.lease_recalled(request).await
        })
        .call(|venus, _, _: cb::Probe| async move { upgraded(&venus, cb::Probe::NAME).map(drop) })
        .call(|venus, _, request: cb::ProbeUuid| async move {
            let ours = upgraded(&venus, cb::ProbeUuid::NAME)?.uuid == request.client;
            if ours { Ok(()) } else { Err(AbortCode(1)) }
        })
        .call(|venus, _, _: cb::WhoAreYou| async move {
            let venus = upgraded(&venus, cb::WhoAreYou::NAME)?;
            CallbackResult::Ok(cb::InterfaceAddrReply { addresses: identity(&venus) })
        })
        .call(|venus, _, _: cb::TellMeAboutYourself| async move {
            let venus = upgraded(&venus, cb::TellMeAboutYourself::NAME)?;
            CallbackResult::Ok(cb::TellMeAboutYourselfReply {
                addresses: identity(&venus),
                capabilities: BoundedVec::first_of([
                    capability::ERROR_TRANSLATION | capability::RIGHTS_BREAKS
                ]),
            })
        });
    Arc::new(debugging(table))
}

/// The calls of `cmdebug` and `xstat_cm_test`, as far as they apply.
fn debugging(table: Table<Weak<Shared>>) -> Table<Weak<Shared>> {
    table
        .refuse(Opcode(cb::GetLock::OPCODE), PAST_THE_END)
        .call(|_, _, _: cb::XStatsVersion| async move {
            CallbackResult::Ok(cb::XStatsVersionReply { version: 2 })
        })
        .call(|venus, _, _: cb::GetLocalCell| async move {
            let venus = upgraded(&venus, cb::GetLocalCell::NAME)?;
            let home =
                venus.location.cell(CellIndex(0)).map(|cell| cell.name.to_string()).unwrap_or_default();
            CallbackResult::Ok(cb::GetLocalCellReply { name: cb::CellText::truncated(home.as_bytes()) })
        })
        .call(|venus, caller, request: cb::GetCe64| async move {
            may_inspect(&caller)?;
            entry(&upgraded(&venus, cb::GetCe64::NAME)?, request.index)
                .map(|entry| cb::GetCe64Reply { entry })
        })
        .call(|venus, caller, request: cb::GetCe| async move {
            may_inspect(&caller)?;
            let entry = entry(&upgraded(&venus, cb::GetCe::NAME)?, request.index)?;
            CallbackResult::Ok(cb::GetCeReply { entry: narrow(&entry) })
        })
        .call(|_, _, _: cb::GetServerPrefs| async move {
            CallbackResult::Ok(cb::GetServerPrefsReply { address: u32::MAX, rank: u32::MAX })
        })
}

fn upgraded(venus: &Weak<Shared>, call: &'static str) -> CallbackResult<Venus> {
    let venus = Venus::anonymous(venus.upgrade().ok_or(AbortCode::RX_CALL_DEAD)?);
    venus.counters.callback(call);
    Ok(venus)
}

async fn call_back(venus: &Venus, caller: &Caller, request: cb::CallBack) -> CallbackResult<()> {
    count_unauthenticated(venus, caller);
    // Each once: a list may name one volume many times, and a break of a whole volume costs work for all of its
    // objects.
    if let (Some(fid), Some(&CallBack::LOCK_FREE)) = (request.fids.first(), request.callbacks.first()) {
        venus.lock_is_free(*fid).await;
        return Ok(());
    }
    if request.fids.contains(&Fid::RIGHTS) {
        venus.promises.rights_broken();
    }
    let fids: BTreeSet<Fid> = request.fids.iter().copied().filter(|fid| fid.volume.0 != 0).collect();
    let whole: BTreeSet<VolumeId> =
        fids.iter().filter(|fid| fid.vnode.0 == 0).map(|fid| fid.volume).collect();
    whole.iter().for_each(|volume| venus.promises.broken(Fid::whole_volume(*volume)));
    fids.iter().filter(|fid| !whole.contains(&fid.volume)).for_each(|fid| venus.promises.broken(*fid));
    venus.watch_open_files();
    venus.kernel.settled().await;
    Ok(())
}

/// Counts unauthenticated callers. Breaks are accepted from any caller: they cost fetches, and reveal and change
/// nothing.
fn count_unauthenticated(venus: &Venus, caller: &Caller) {
    if caller.identity == afs_rpc::Identity::Anonymous {
        count(&venus.counters.callbacks_unproven);
    }
}

/// Ends all promises of the calling server, identified by its UUID, or else by its address.
async fn reset(venus: &Venus, caller: &Caller, named: Option<cb::InitCallBackState3>) -> CallbackResult<()> {
    count_unauthenticated(venus, caller);
    let mut servers =
        named.map(|request| venus.location.servers().by_uuid(request.server)).unwrap_or_default();
    if servers.is_empty() {
        servers = venus.location.servers().by_address(caller.peer);
    }
    servers.iter().for_each(|server| venus.promises.server_reset(server));
    if servers.is_empty() {
        tracing::debug!(peer = %caller.peer, "a server that we do not know resets its promises");
    }
    venus.watch_open_files();
    venus.kernel.settled().await;
    Ok(())
}

fn identity(venus: &Venus) -> InterfaceAddr {
    // Servers call back to the source address of calls; other addresses would be guesses.
    InterfaceAddr { uuid: venus.uuid, interfaces: BoundedVec::new() }
}

/// The contents of the cache are shown to this machine and to authenticated callers only, as they reveal what users do.
fn may_inspect(caller: &Caller) -> CallbackResult<()> {
    let is_known = caller.identity != afs_rpc::Identity::Anonymous || caller.peer.ip().is_loopback();
    is_known.then_some(()).ok_or(PAST_THE_END)
}

fn entry(venus: &Venus, index: i32) -> CallbackResult<cb::CacheEntry64> {
    let index = usize::try_from(index).map_err(|_| PAST_THE_END)?;
    let vnode = venus.vnodes.nth(index).ok_or(PAST_THE_END)?;
    let state = vnode.state();
    let status = state.status.unwrap_or_default();
    Ok(cb::CacheEntry64 {
        cell: i32::from(vnode.key.cell.0) + 1,
        fid: vnode.key.fid,
        length: status.length as i64,
        data_version: status.data_version.0 as i32,
        callback: i32::from(state.promise.is_some()),
        references: 1,
        opens: state.file.opens().min(i16::MAX as u32) as i16,
        mount_state: if vnode.key.is_volume_root() { 2 } else { 0 },
        ..cb::CacheEntry64::default()
    })
}

fn narrow(entry: &cb::CacheEntry64) -> cb::CacheEntry {
    cb::CacheEntry {
        address: entry.address,
        cell: entry.cell,
        fid: entry.fid,
        length: entry.length.min(i64::from(i32::MAX)) as i32,
        data_version: entry.data_version,
        lock: entry.lock,
        callback: entry.callback,
        callback_expires: entry.callback_expires,
        references: entry.references,
        opens: entry.opens,
        writers: entry.writers,
        mount_state: entry.mount_state,
        states: entry.states,
    }
}
