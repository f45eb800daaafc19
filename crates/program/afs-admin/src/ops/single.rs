//! Operations with one effect on one server, which need no journal: `vos zap`, `online`, `offline`,
//! `setfields`, `setpath`, `setleases`, `setcopies`, `setwidth`, `size`, `endtrans`.

use std::net::Ipv4Addr;

use afs_rpc::CallError;
use afs_wire::ids::{UnixSeconds, VolumeId};
use afs_wire::vol::{
    DataRoute, DriveCount, EndTrans, GetLending, GetPlacement, GetRoute, Lending, NukeVolume, Placement,
    TransactionId, VolumeFlags, VolumeInfo,
};

use crate::calls::Attach;
use crate::error::{AdminError, AdminResult};
use crate::{Admin, ServerPartition};

/// Fields of a volume's header that can be set; `None` leaves one unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// Quota in units of 1024 bytes; 0 is none.
    pub quota: Option<i32>,
    /// Reset the count of today's accesses.
    pub clear_use: bool,
    /// Reset the counter of changes.
    pub clear_update_counter: bool,
}

/// How the bytes of a volume's files travel, and where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataSettings {
    /// The ways.
    pub route: DataRoute,
    /// On which of the drives for its new data.
    pub placement: Placement,
    /// Drives for the new data of its partition.
    pub drives: u32,
}

impl Admin {
    /// Deletes a volume at a server, whatever the location database says; with `force` however damaged it is.
    /// Returns whether it existed.
    ///
    /// # Errors
    /// The server fails.
    pub async fn zap(&self, place: ServerPartition, volume: VolumeId, force: bool) -> AdminResult<bool> {
        if !force {
            return self.delete_volume(place, volume, false).await;
        }
        let there = self.volume_at(place, volume).await?.is_some();
        let nuked = self.at(place.server, &NukeVolume { partition: place.partition, volume }).await;
        let doing = || format!("Could not zap volume {volume} on {place}");
        nuked.map_err(|e| AdminError::call(doing(), Some(place.server), e))?;
        Ok(there)
    }

    /// Brings a volume on line.
    ///
    /// # Errors
    /// It does not exist, a transaction holds it, or the server fails.
    pub async fn online(&self, place: ServerPartition, volume: VolumeId) -> AdminResult {
        self.publish(place, volume, Attach::OFFLINE).await
    }

    /// Takes a volume off line, for `seconds` or until it is brought on line again. With `busy` its clients wait
    /// meanwhile.
    ///
    /// # Errors
    /// As [`Admin::online`].
    pub async fn offline(
        &self,
        place: ServerPartition,
        volume: VolumeId,
        busy: bool,
        seconds: Option<u32>,
    ) -> AdminResult {
        use afs_rpc::EnvExt;
        let attach = if busy { Attach::BUSY } else { Attach::OFFLINE };
        let held = self.take_existing(place, volume, attach).await?;
        let done = async {
            match seconds {
                Some(seconds) => {
                    self.env().sleep(std::time::Duration::from_secs(u64::from(seconds))).await;
                    held.set_flags(VolumeFlags(0)).await
                }
                None => held.set_flags(VolumeFlags::OUT_OF_SERVICE).await,
            }
        };
        let done = done.await;
        held.end_after(done).await
    }

    /// Sets fields of a read-write volume's header.
    ///
    /// # Errors
    /// No such volume, a transaction that holds it, or a server that fails.
    pub async fn set_fields(&self, volume: &str, fields: Fields) -> AdminResult {
        let (group, home) = self.read_write(&format!("Could not set the fields of {volume}"), volume).await?;
        let held = self.take_existing(home, group.id(), Attach::BUSY).await?;
        let mut info = VolumeInfo::unchanged();
        info.quota_max = fields.quota.unwrap_or(VolumeInfo::UNCHANGED);
        info.day_use = if fields.clear_use { 0 } else { VolumeInfo::UNCHANGED };
        info.update_counter = if fields.clear_update_counter { 0 } else { VolumeInfo::UNCHANGED };
        let set = held.set_info(info).await;
        held.end_after(set).await
    }

    /// Sets by which ways the bytes of a read-write volume's files may travel.
    ///
    /// # Errors
    /// No such volume, a transaction that holds it, or a server that fails or is not Andrew's.
    pub async fn set_route(&self, volume: &str, route: DataRoute) -> AdminResult {
        let (group, home) =
            self.read_write(&format!("Could not set the data path of {volume}"), volume).await?;
        let held = self.take_existing(home, group.id(), Attach::BUSY).await?;
        let set = held.set_route(route).await;
        held.end_after(set).await
    }

    /// By which ways the bytes of a volume's files may travel; `None` where its server cannot tell.
    pub async fn route_at(&self, server: Ipv4Addr, volume: VolumeId) -> Option<DataRoute> {
        self.at(server, &GetRoute { volume }).await.ok().map(|reply| reply.route)
    }

    /// Sets whether the directories of a read-write volume may be leased to clients. All leases of its directories are returned first.
    ///
    /// # Errors
    /// As [`Admin::set_route`].
    pub async fn set_lending(&self, volume: &str, lending: Lending) -> AdminResult {
        let (group, home) = self.read_write(&format!("Could not set the leases of {volume}"), volume).await?;
        let held = self.take_existing(home, group.id(), Attach::BUSY).await?;
        let set = held.set_lending(lending).await;
        held.end_after(set).await
    }

    /// Whether the directories of a volume may be leased to clients; `None` where its server cannot tell.
    pub async fn lending_at(&self, server: Ipv4Addr, volume: VolumeId) -> Option<Lending> {
        self.at(server, &GetLending { volume }).await.ok().map(|reply| reply.lending)
    }

    /// Sets on how many drives the data of a read-write volume's files are when a store is complete; without a number, as its partition
    /// has it: one, and copies on the others in the background.
    ///
    /// # Errors
    /// As [`Admin::set_route`].
    pub async fn set_copies(&self, volume: &str, copies: Option<DriveCount>) -> AdminResult {
        self.change_placement(volume, |placement| placement.copies = copies).await
    }

    /// Sets over how many drives the data of each file of a read-write volume go round.
    ///
    /// # Errors
    /// As [`Admin::set_route`].
    pub async fn set_width(&self, volume: &str, width: DriveCount) -> AdminResult {
        self.change_placement(volume, |placement| placement.width = width).await
    }

    /// The settings of a read-write volume's data.
    ///
    /// # Errors
    /// No such volume, or a server that fails or is not Andrew's.
    pub async fn data_settings(&self, volume: &str) -> AdminResult<DataSettings> {
        let doing = || format!("Could not read the data path and the drives of {volume}");
        let (group, home) = self.read_write(&doing(), volume).await?;
        let failed = |error| AdminError::call(doing(), Some(home.server), error);
        let route = self.at(home.server, &GetRoute { volume: group.id() }).await.map_err(failed)?.route;
        let placed = self.at(home.server, &GetPlacement { volume: group.id() }).await.map_err(failed)?;
        Ok(DataSettings { route, placement: placed.placement, drives: placed.drives })
    }

    /// Sets on which drives the data of a read-write volume go.
    ///
    /// # Errors
    /// As [`Admin::set_route`].
    pub async fn set_placement(&self, volume: &str, wanted: Placement) -> AdminResult {
        self.change_placement(volume, |placement| *placement = wanted).await
    }

    async fn change_placement(&self, volume: &str, change: impl FnOnce(&mut Placement)) -> AdminResult {
        let (group, home) = self.read_write(&format!("Could not set the drives of {volume}"), volume).await?;
        let held = self.take_existing(home, group.id(), Attach::BUSY).await?;
        let set = async {
            let known = self.at(home.server, &GetPlacement { volume: group.id() }).await;
            let doing = || format!("Could not read the drives of volume {volume}");
            let known = known.map_err(|error| AdminError::call(doing(), Some(home.server), error))?;
            let mut placement = known.placement;
            change(&mut placement);
            held.set_placement(placement).await?;
            Ok((placement, known.drives))
        };
        let (placement, drives) = held.end_after(set.await).await?;
        let wanted = placement.copies.unwrap_or(DriveCount::ONE).max(placement.width);
        if u32::from(wanted.get()) > drives {
            self.progress().warn(&format!(
                "the new data of {home} go to {drives} drive(s); this takes effect there with {wanted}: `andrew drive use NAME --copy OTHER`"
            ));
        }
        Ok(())
    }

    /// On which drives the data of a volume are; `None` where its server cannot tell.
    pub async fn placement_at(&self, server: Ipv4Addr, volume: VolumeId) -> Option<Placement> {
        self.at(server, &GetPlacement { volume }).await.ok().map(|reply| reply.placement)
    }

    /// Estimated length of a dump of a volume: of all of it, or of the changes since a time.
    ///
    /// # Errors
    /// No such volume, a transaction that holds it, or a server that cannot tell.
    pub async fn size(
        &self,
        place: ServerPartition,
        volume: VolumeId,
        since: UnixSeconds,
    ) -> AdminResult<u64> {
        let held = self.take_existing(place, volume, Attach::BUSY).await?;
        let size = self.dump_size(&held, since).await;
        let size = size.ok_or_else(|| {
            AdminError::failed(format!("Could not get the size of volume {volume}"), "its server cannot tell")
        });
        held.end_after(size).await
    }

    /// As [`Admin::size`], for a volume at any of its sites in the location database.
    ///
    /// # Errors
    /// As [`Admin::size`], or no such entry.
    pub async fn size_of(&self, volume: &str, since: UnixSeconds) -> AdminResult<u64> {
        let group = self.group(volume).await?;
        let place = self.some_place(&format!("Could not get the size of volume {volume}"), &group)?;
        self.size(place, group.wanted(), since).await
    }

    /// Ends a transaction, whoever began it.
    ///
    /// # Errors
    /// There is none with that id.
    pub async fn end_transaction(&self, server: Ipv4Addr, transaction: TransactionId) -> AdminResult {
        let ended: Result<_, CallError> =
            self.transaction_server(server).call(&EndTrans { transaction }).await;
        let doing = || format!("Could not end transaction {transaction}");
        ended.map(drop).map_err(|e| {
            AdminError::call(doing(), Some(server), e)
                .with_hint(format!("`andrew vos status {server}` shows those it has"))
        })
    }
}
