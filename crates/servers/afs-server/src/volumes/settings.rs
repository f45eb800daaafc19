//! Volume service calls that read and set a volume's header.

use std::sync::Arc;

use afs_rpc::Table;
use afs_volume::{VolumeHeader, VolumeStore, VolumeTx};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::{UnixSeconds, VolumeId, VolumeKind};
use afs_wire::rpc::Nothing;
use afs_wire::vol::{self, TransactionId};
use afs_wire::xdr::ByteString;

use super::{VolumeServer, errno, new_name};
use crate::guard::{administrators, anyone};

/// The value that leaves a number or date unchanged in SetInfo.
const UNCHANGED: i32 = vol::VolumeInfo::UNCHANGED;

type Server = Arc<VolumeServer>;

pub(super) fn add(table: Table<VolumeServer>) -> Table<VolumeServer> {
    let table = anyone(table, |server: Server, call: vol::GetStatus| async move {
        let header = server.enter(call.transaction, "GetStatus")?.volume()?.header();
        Ok(vol::GetStatusReply { status: server.status(&header) })
    });
    let table = anyone(table, |server: Server, call: vol::GetName| async move {
        let header = server.enter(call.transaction, "GetName")?.volume()?.header();
        let name = ByteString::new(header.name.as_str().as_bytes());
        Ok(vol::GetNameReply { name: name.map_err(|_| errno(Errno::E2BIG))? })
    });
    let table = administrators(table, |server: Server, call: vol::SetInfo| async move {
        let (info, restarts) = (call.info, call.info.day_use != UNCHANGED);
        check_numbers(&info)?;
        server.set(call.transaction, "SetStatus", move |tx| set_info(tx.edit_header(), &info)).await?;
        if restarts && let Ok(work) = server.enter(call.transaction, "SetStatus") {
            server.states.uses().restart(work.id());
        }
        Ok(())
    });
    let table = administrators(table, |server: Server, call: vol::SetDate| async move {
        let date = call.date;
        server.set(call.transaction, "SetDate", move |tx| set_creation(tx.edit_header(), date)).await
    });
    let table = anyone(table, |server: Server, call: vol::GetRoute| async move {
        Ok(vol::GetRouteReply { route: server.shown(call.volume)?.0.route })
    });
    let table = administrators(table, |server: Server, call: vol::SetRoute| async move {
        let volume = server.enter(call.transaction, "SetRoute")?.id();
        let route = call.route;
        server.set(call.transaction, "SetRoute", move |tx| tx.edit_replicated().route = route).await?;
        // What was given out for the ways of before.
        server.states.revoke(volume);
        Ok(())
    });
    let table = privacy_calls(placement_calls(lending_calls(table)));
    administrators(table, |server: Server, call: vol::SetIdsTypes| async move { server.set_ids(&call).await })
}

/// The transaction of a change has had all leases of the volume returned, and keeps others from being lent until it ends.
fn lending_calls(table: Table<VolumeServer>) -> Table<VolumeServer> {
    let table = anyone(table, |server: Server, call: vol::GetLending| async move {
        Ok(vol::GetLendingReply { lending: server.shown(call.volume)?.0.lending })
    });
    administrators(table, |server: Server, call: vol::SetLending| async move {
        let lending = call.lending;
        server.set(call.transaction, "SetLending", move |tx| tx.edit_header().lending = lending).await
    })
}

fn placement_calls(table: Table<VolumeServer>) -> Table<VolumeServer> {
    let table = anyone(table, |server: Server, call: vol::GetPlacement| async move {
        let (header, store) = server.shown(call.volume)?;
        let drives = store.drives_in_use().len() as u32;
        Ok(vol::GetPlacementReply { placement: header.placement, drives })
    });
    administrators(table, |server: Server, call: vol::SetPlacement| async move {
        let placement = call.placement;
        server
            .set(call.transaction, "SetPlacement", move |tx| tx.edit_replicated().placement = placement)
            .await
    })
}

fn privacy_calls(table: Table<VolumeServer>) -> Table<VolumeServer> {
    let table = administrators(table, |server: Server, call: vol::GetPrivacy| async move {
        let (header, _) = server.shown(call.volume)?;
        let closed = vol::ClosedPasts::first_of(header.closed_pasts.clone());
        Ok(vol::GetPrivacyReply { privacy: vol::Privacy { modes: header.modes, closed } })
    });
    administrators(table, |server: Server, call: vol::SetPrivacy| async move {
        let vol::Privacy { modes, closed } = call.privacy;
        let set = move |tx: &mut VolumeTx<'_, '_>| {
            let header = tx.edit_header();
            (header.modes, header.closed_pasts) = (modes, closed.into_vec());
        };
        server.set(call.transaction, "SetPrivacy", set).await
    })
}

impl VolumeServer {
    /// A volume's header, and its store. During a move from partition to partition there are two: the target is temporary.
    fn shown(&self, volume: VolumeId) -> Result<(Arc<VolumeHeader>, &VolumeStore), AbortCode> {
        let header = |store: &VolumeStore| Some(store.volume(volume)?.header());
        let all = self.partitions.iter().filter_map(|(_, store)| Some((header(store)?, store)));
        all.min_by_key(|(header, _)| header.destroy).ok_or(AbortCode::VNOVOL)
    }

    /// Changes the header of a transaction's volume.
    async fn set(
        self: &Arc<Self>,
        id: TransactionId,
        procedure: &'static str,
        change: impl FnOnce(&mut VolumeTx<'_, '_>) + Send + 'static,
    ) -> Result<Nothing, AbortCode> {
        let work = self.enter(id, procedure)?;
        work.volume_to_change()?;
        self.edit(work.transaction().site(), change).await
    }

    /// Sets name, kind and group.
    async fn set_ids(self: &Arc<Self>, call: &vol::SetIdsTypes) -> Result<Nothing, AbortCode> {
        let name = new_name(&call.name)?;
        let kind = call.kind.check().ok_or(errno(Errno::EINVAL))?;
        let (parent, clone, backup) = (call.parent, call.clone, call.backup);
        let work = self.enter(call.transaction, "SetIdsTypes")?;
        let before = work.volume_to_change()?.header();
        let (writable, is_renamed) = (before.is_writable(), before.name != name);
        // A volume whose data is shared cannot simply become writable: ConvertROtoRWvolume and clones do
        // that.
        if kind == VolumeKind::ReadWrite && !writable {
            return Err(AbortCode::VOLSERBADOP);
        }
        let set = self.edit(work.transaction().site(), move |tx| {
            let header = tx.edit_header();
            (header.name, header.kind) = (name, kind);
            (header.parent, header.read_only, header.backup) = (parent, clone, backup);
        });
        set.await?;
        if is_renamed {
            // Mount points with its old name, and with its new one, lead elsewhere: clients ask again.
            self.announce_change(work.id());
        }
        Ok(())
    }
}

/// Refuses negative counts: OpenAFS stores such a quota, and every later store then exceeds it.
fn check_numbers(info: &vol::VolumeInfo) -> Result<(), AbortCode> {
    let counts = [info.quota_max, info.day_use];
    if counts.iter().all(|count| *count >= UNCHANGED) { Ok(()) } else { Err(errno(Errno::EINVAL)) }
}

/// Sets the fields that are given: a number or date of -1 is unchanged.
fn set_info(header: &mut VolumeHeader, info: &vol::VolumeInfo) {
    let number =
        |number: i32| Some(number).filter(|n| *n != UNCHANGED).map(|n| u32::try_from(n).unwrap_or(0));
    let date = |date: UnixSeconds| Some(date).filter(|date| date.0 != UNCHANGED as u32);
    header.max_quota = number(info.quota_max).unwrap_or(header.max_quota);
    header.day_use = number(info.day_use).unwrap_or(header.day_use);
    header.update_counter = number(info.update_counter).unwrap_or(header.update_counter);
    if let Some(date) = date(info.creation_date) {
        set_creation(header, date);
    }
    header.update_date = date(info.update_date).unwrap_or(header.update_date);
}

/// A content that is newer than the one before is not older than the last clone of that one: the next release finds it.
fn set_creation(header: &mut VolumeHeader, date: UnixSeconds) {
    header.creation_date = if date > header.creation_date { date.max(header.clone_date) } else { date };
}
