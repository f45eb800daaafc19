//! The setting by which ways a volume's bytes may travel, carried to another site beside the dump, which has no place
//! for it (`docs/protocol/extensions.md`, SetRoute).

use std::net::Ipv4Addr;

use afs_rpc::CallError;
use afs_wire::error::AbortCode;
use afs_wire::ids::VolumeId;
use afs_wire::vol::{DataRoute, GetRoute};

use super::Transaction;
use crate::Admin;
use crate::error::{AdminError, AdminResult};

impl Admin {
    /// Gives a volume that is being written the setting of its source. A server that knows no settings is no error:
    /// from it there is nothing to carry, and to it only a warning is left, where its default is another.
    ///
    /// # Errors
    /// A server that fails.
    pub(crate) async fn carry_route(
        &self,
        from: Ipv4Addr,
        volume: VolumeId,
        target: &Transaction,
    ) -> AdminResult {
        let Some(route) = self.known_route(from, volume).await? else { return Ok(()) };
        let knows = self.is_ours(target.place.server).await && target.set_route_if_known(route).await?;
        if !knows && route != DataRoute::default() {
            let (server, default) = (target.place.server, DataRoute::default());
            self.progress().warn(&format!(
                "volume {volume} is set to {route} (`andrew vos setpath`); server {server} does not know that setting, \
                 and serves it as {default}"
            ));
        }
        Ok(())
    }

    /// The setting; `None` at a server that knows none.
    async fn known_route(&self, server: Ipv4Addr, volume: VolumeId) -> AdminResult<Option<DataRoute>> {
        match self.at(server, &GetRoute { volume }).await {
            Ok(reply) => Ok(Some(reply.route)),
            Err(CallError::Abort(AbortCode::RXGEN_OPCODE)) => Ok(None),
            Err(error) => {
                let doing = format!("Could not read the setting of the data path of volume {volume}");
                Err(AdminError::call(doing, Some(server), error))
            }
        }
    }
}
