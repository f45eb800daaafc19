//! Settings of a volume that a dump has no place for, carried to another site beside it: by which ways its bytes may travel, on
//! which drives its data go, whether its directories are leased, and what it withholds beyond its lists
//! (`docs/protocol/extensions.md`, SetRoute, SetPlacement, SetLending and SetPrivacy).

use std::net::Ipv4Addr;

use afs_rpc::CallError;
use afs_wire::error::AbortCode;
use afs_wire::ids::VolumeId;
use afs_wire::rpc::{Nothing, Request};
use afs_wire::vol::{
    DataRoute, GetLending, GetPlacement, GetPrivacy, GetRoute, Lending, Modes, Placement, SetLending,
    SetPlacement, SetPrivacy, SetRoute,
};

use super::Transaction;
use crate::Admin;
use crate::error::{AdminError, AdminResult};

impl Admin {
    /// Gives a volume that is being written the settings of its source. A server that knows no settings is no error:
    /// from it there is nothing to carry, and to it only a warning is left, where its default is another.
    ///
    /// # Errors
    /// A server that fails.
    pub(crate) async fn carry_settings(
        &self,
        from: Ipv4Addr,
        volume: VolumeId,
        target: &Transaction,
    ) -> AdminResult {
        let server = target.place.server;
        if let Some(reply) = self.known(from, volume, &GetRoute { volume }).await? {
            let (route, default) = (reply.route, DataRoute::default());
            let set = SetRoute { transaction: target.id, route };
            if !self.carried(target, &set).await? && route != default {
                self.progress().warn(&format!(
                    "volume {volume} is set to {route} (`andrew vos setpath`); server {server} does not know that setting, \
                     and serves it as {default}"
                ));
            }
        }
        if let Some(reply) = self.known(from, volume, &GetPlacement { volume }).await? {
            let placement = reply.placement;
            let set = SetPlacement { transaction: target.id, placement };
            if !self.carried(target, &set).await? && placement != Placement::default() {
                self.progress().warn(&format!(
                    "volume {volume} is placed on several drives (`andrew vos setcopies`, `setwidth`); server {server} does not \
                     know these settings, and acknowledges stores that are on one drive"
                ));
            }
        }
        if let Some(reply) = self.known(from, volume, &GetLending { volume }).await? {
            let lending = reply.lending;
            let set = SetLending { transaction: target.id, lending };
            if !self.carried(target, &set).await? && lending != Lending::default() {
                self.progress().warn(&format!(
                    "the directories of volume {volume} are leased to no client (`andrew vos setleases`); server {server} does not \
                     know that setting, and leases them to clients that ask, if it has leases"
                ));
            }
        }
        if let Some(reply) = self.known(from, volume, &GetPrivacy { volume }).await? {
            let modes = reply.privacy.modes;
            let set = SetPrivacy { transaction: target.id, privacy: reply.privacy };
            if !self.carried(target, &set).await? && modes != Modes::default() {
                self.progress().warn(&format!(
                    "modes close directories of volume {volume} (`andrew vos setmodes`); server {server} does not know that setting: \
                     there access lists alone decide"
                ));
            }
        }
        Ok(())
    }

    /// Gives a volume the placement of its source before its data come, so that they are placed so. What servers do not know is left
    /// to [`Admin::carry_settings`].
    ///
    /// # Errors
    /// A server that fails.
    pub(crate) async fn carry_placement_first(
        &self,
        from: Ipv4Addr,
        volume: VolumeId,
        target: &Transaction,
    ) -> AdminResult {
        let known = self.known(from, volume, &GetPlacement { volume }).await?;
        if let Some(placement) = known.map(|reply| reply.placement).filter(|one| *one != Placement::default())
        {
            self.carried(target, &SetPlacement { transaction: target.id, placement }).await?;
        }
        Ok(())
    }

    /// Sets a setting of a target; false if its server does not know it.
    async fn carried(&self, target: &Transaction, set: &impl Request<Reply = Nothing>) -> AdminResult<bool> {
        Ok(self.is_ours(target.place.server).await && target.set_if_known(set).await?)
    }

    /// The reply to a question about a setting; `None` from a server that does not know it.
    async fn known<R: Request>(
        &self,
        server: Ipv4Addr,
        volume: VolumeId,
        request: &R,
    ) -> AdminResult<Option<R::Reply>> {
        match self.at(server, request).await {
            Ok(reply) => Ok(Some(reply)),
            Err(CallError::Abort(AbortCode::RXGEN_OPCODE)) => Ok(None),
            Err(error) => {
                let doing = format!("Could not read a setting of volume {volume} ({})", R::NAME);
                Err(AdminError::call(doing, Some(server), error))
            }
        }
    }
}
