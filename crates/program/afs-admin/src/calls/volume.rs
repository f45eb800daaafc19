//! Calls to a volume server.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use afs_rpc::{CallError, CallOptions, Connection};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::{PartitionId, VolumeId};
use afs_wire::rpc::Request;
use afs_wire::vol::{
    InfoStatus, ListOneVolume, Monitor, PartitionInfo64, PartitionText, TransactionInfo, VolumeInfo,
    XListPartitions,
};

use crate::error::{AdminError, AdminResult};
use crate::{Admin, ServerPartition};

/// Dead time of a volume server that works on a call: it may wait for a disk.
const DEAD: Duration = Duration::from_secs(20);

impl Admin {
    pub(crate) fn volume_server(&self, server: Ipv4Addr) -> Connection {
        let peer = SocketAddr::from((server, self.cell().volume_port));
        let connection =
            self.rx().connection(peer, afs_wire::rpc::ServiceId::VOLUME, self.security().clone());
        connection.with_options(CallOptions { dead: Some(DEAD), hard: None })
    }

    /// A call to one volume server.
    pub(crate) async fn at<R: Request>(&self, server: Ipv4Addr, request: &R) -> Result<R::Reply, CallError> {
        self.volume_server(server).call(request).await
    }

    /// A server's information on a volume; `None` if the volume does not exist there.
    ///
    /// # Errors
    /// The server does not reply, or cannot tell.
    pub async fn volume_at(
        &self,
        place: ServerPartition,
        volume: VolumeId,
    ) -> AdminResult<Option<VolumeInfo>> {
        let request = ListOneVolume { partition: place.partition, volume };
        let doing = || format!("Could not look at volume {volume} on {place}");
        match self.at(place.server, &request).await {
            Ok(reply) => Ok(reply.volumes.first().copied()),
            Err(CallError::Abort(code)) if is_absent(code) => Ok(None),
            Err(error) => Err(AdminError::call(doing(), Some(place.server), error)),
        }
    }

    /// As [`Admin::volume_at`], for a volume that must exist and that no transaction holds.
    pub(crate) async fn free_volume_at(
        &self,
        place: ServerPartition,
        volume: VolumeId,
    ) -> AdminResult<VolumeInfo> {
        let doing = || format!("Could not look at volume {volume} on {place}");
        let info = self.volume_at(place, volume).await?;
        let info = info.ok_or_else(|| {
            AdminError::refused(doing(), "it is not there")
                .with_hint("`andrew vos check` compares the VLDB with the servers")
        })?;
        match info.status {
            InfoStatus::OK => Ok(info),
            InfoStatus::BUSY => Err(AdminError::refused(doing(), "another operation holds it").with_hint(
                format!("`andrew vos status {}` shows which; try again when it is done", place.server),
            )),
            _ => Err(AdminError::refused(doing(), "it is damaged: its server cannot attach it")),
        }
    }

    /// The transactions of a server.
    pub(crate) async fn transactions(&self, server: Ipv4Addr) -> AdminResult<Vec<TransactionInfo>> {
        let reply = self.at(server, &Monitor {}).await;
        let reply =
            reply.map_err(|e| AdminError::call("Could not list the transactions", Some(server), e))?;
        Ok(reply.transactions.iter().copied().collect())
    }

    /// The partitions of a server.
    ///
    /// # Errors
    /// It does not reply.
    pub async fn partitions(&self, server: Ipv4Addr) -> AdminResult<Vec<PartitionId>> {
        let reply = self.at(server, &XListPartitions {}).await;
        let reply = reply.map_err(|e| AdminError::call("Could not list the partitions", Some(server), e))?;
        Ok(reply.partitions.iter().filter_map(|p| p.check()).collect())
    }

    /// Refuses a site that does not exist.
    pub(crate) async fn check_place(&self, doing: &str, place: ServerPartition) -> AdminResult {
        let there = self.partitions(place.server).await?;
        if there.iter().any(|p| Some(*p) == place.partition.check()) {
            return Ok(());
        }
        Err(AdminError::refused(doing, format!("server {} has no such partition", place.server))
            .with_hint(format!("`andrew vos partinfo {}` shows those it has", place.server)))
    }

    /// Refuses a site that is off line, or has less space than `kib`.
    pub(crate) async fn check_room(&self, doing: &str, place: ServerPartition, kib: i32) -> AdminResult {
        self.check_place(doing, place).await?;
        let name = place.partition.check().map(|p| p.to_string()).unwrap_or_default();
        let request = PartitionInfo64 { name: PartitionText::truncated(name.as_bytes()) };
        let reply = match self.at(place.server, &request).await {
            // An older server: it reports itself when it is full.
            Err(CallError::Abort(AbortCode::RXGEN_OPCODE)) => return Ok(()),
            Err(CallError::Abort(AbortCode::VOFFLINE)) => {
                return Err(AdminError::refused(doing, format!("{place} is off line"))
                    .with_hint("`andrew status` on that host tells why"));
            }
            reply => reply.map_err(|e| AdminError::call(doing, Some(place.server), e))?,
        };
        let free = reply.partition.free;
        if free >= i64::from(kib) {
            return Ok(());
        }
        Err(AdminError::refused(doing, format!("{place} has {free} K free, and the volume takes {kib} K"))
            .with_hint("choose another partition (`andrew vos partinfo`)"))
    }
}

/// Whether a code means that a volume does not exist. OpenAFS's servers answer ENODEV to a listing.
pub(crate) fn is_absent(code: AbortCode) -> bool {
    code == AbortCode::VNOVOL || code == AbortCode::VOLSERNOVOL || code.0 == Errno::ENODEV.number()
}
