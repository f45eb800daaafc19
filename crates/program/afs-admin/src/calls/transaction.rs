//! Volume held by a transaction of its server (`docs/protocol/volserver.md` "4. Transactions").

use std::net::Ipv4Addr;
use std::time::Duration;

use afs_rpc::{CallError, EnvExt};
use afs_wire::error::AbortCode;
use afs_wire::ids::{KindNumber, UnixSeconds, VolumeId, VolumeKind};
use afs_wire::rpc::{Nothing, Request};
use afs_wire::vol::{
    AttachFlags, Clone as CloneVolume, CreateVolume, DataRoute, DeleteVolume, EndTrans, GetStatus,
    HeaderStatus, Lending, NameChars, NameText, Placement, Privacy, ReClone, RestoreCookie, SetDate,
    SetFlags, SetForwarding, SetIdsTypes, SetInfo, SetLending, SetPlacement, SetPrivacy, SetRoute,
    TransCreate, TransactionId, VolumeFlags, VolumeInfo,
};

use super::proof::{GONE, Proof};
use super::volume::is_absent;
use crate::error::{AdminError, AdminResult};
use crate::{Admin, ServerPartition};

/// How a transaction attaches its volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Attach {
    /// What clients see meanwhile.
    pub(crate) mode: AttachFlags,
    /// Whether transactions left over from the operation that is being resumed are ended first.
    pub(crate) break_others: bool,
}

impl Attach {
    /// Clients of the volume are refused.
    pub(crate) const OFFLINE: Self = Self { mode: AttachFlags::OFFLINE, break_others: false };
    /// Clients of a read-write volume wait.
    pub(crate) const BUSY: Self = Self { mode: AttachFlags::BUSY, break_others: false };

    /// The same, in an operation that is being resumed.
    pub(crate) fn breaking(mut self, others: bool) -> Self {
        self.break_others = others;
        self
    }
}

/// An open transaction. Dropping does not end it: its server ends it after ten minutes, and a resumed
/// operation ends it before.
#[derive(Clone, Debug)]
pub(crate) struct Transaction {
    pub(super) admin: Admin,
    /// Site of the volume.
    pub(crate) place: ServerPartition,
    /// The volume.
    pub(crate) volume: VolumeId,
    /// Its id there.
    pub(crate) id: TransactionId,
    pub(super) proof: Proof,
}

/// Attempts to get a volume that another transaction holds.
const BUSY_TRIES: u64 = 6;

impl Admin {
    /// Opens a transaction on a volume; `None` if it does not exist.
    pub(crate) async fn take(
        &self,
        place: ServerPartition,
        volume: VolumeId,
        attach: Attach,
    ) -> AdminResult<Option<Transaction>> {
        let request = TransCreate { volume, partition: place.partition, flags: attach.mode };
        let mut tries = 0;
        loop {
            match self.at(place.server, &request).await {
                Ok(reply) => return Ok(Some(self.transaction(place, volume, reply.transaction))),
                Err(CallError::Abort(code)) if is_absent(code) => return Ok(None),
                Err(CallError::Abort(AbortCode::VOLSERVOLBUSY)) if tries < BUSY_TRIES => {
                    if attach.break_others {
                        self.break_transactions(place, volume).await?;
                    }
                    self.env().sleep(Duration::from_secs(tries)).await;
                    tries += 1;
                }
                Err(error) => {
                    let doing = format!("Could not begin a transaction on volume {volume} on {place}");
                    let hint = format!("`andrew vos status {}` shows who holds it", place.server);
                    let busy = error.abort_code() == Some(AbortCode::VOLSERVOLBUSY);
                    let error = AdminError::call(doing, Some(place.server), error);
                    return Err(if busy { error.with_hint(hint) } else { error });
                }
            }
        }
    }

    /// Opens a transaction on a volume that must exist.
    pub(crate) async fn take_existing(
        &self,
        place: ServerPartition,
        volume: VolumeId,
        attach: Attach,
    ) -> AdminResult<Transaction> {
        self.take(place, volume, attach).await?.ok_or_else(|| {
            AdminError::failed(
                format!("Could not begin a transaction on volume {volume}"),
                format!("it is not on {place}"),
            )
            .with_hint("`andrew vos check` compares the VLDB with the servers")
        })
    }

    /// Creates a volume without content, off line, and holds it.
    pub(crate) async fn make(
        &self,
        place: ServerPartition,
        volume: VolumeId,
        name: &str,
        kind: VolumeKind,
        parent: VolumeId,
    ) -> AdminResult<Transaction> {
        let doing = || format!("Could not make volume {name} ({volume}) on {place}");
        let request = CreateVolume {
            partition: place.partition,
            name: text(name, doing)?,
            kind: KindNumber::from(kind),
            parent,
            volume,
        };
        let reply = self.at(place.server, &request).await;
        let reply = reply.map_err(|e| AdminError::call(doing(), Some(place.server), e))?;
        Ok(self.transaction(place, volume, reply.transaction))
    }

    /// Deletes a volume at its server. A missing one is no error; returns whether it existed.
    pub(crate) async fn delete_volume(
        &self,
        place: ServerPartition,
        volume: VolumeId,
        break_others: bool,
    ) -> AdminResult<bool> {
        let Some(held) = self.take(place, volume, Attach::OFFLINE.breaking(break_others)).await? else {
            return Ok(false);
        };
        let deleted = async {
            held.set_flags(UNPUBLISHED).await?;
            held.delete().await
        };
        held.end_after(deleted.await).await.map(|()| true)
    }

    /// Brings a volume on line.
    pub(crate) async fn publish(
        &self,
        place: ServerPartition,
        volume: VolumeId,
        attach: Attach,
    ) -> AdminResult {
        let held = self.take_existing(place, volume, attach).await?;
        let published = held.set_flags(VolumeFlags(0)).await;
        held.end_after(published).await
    }

    /// Ends every transaction on a volume.
    pub(crate) async fn break_transactions(&self, place: ServerPartition, volume: VolumeId) -> AdminResult {
        let all = self.transactions(place.server).await?;
        for one in all.iter().filter(|t| t.volume == volume && t.partition == place.partition) {
            // It may have ended by itself meanwhile.
            let _ = self.transaction_server(place.server).call(&EndTrans { transaction: one.id }).await;
        }
        Ok(())
    }

    pub(crate) fn transaction(
        &self,
        place: ServerPartition,
        volume: VolumeId,
        id: TransactionId,
    ) -> Transaction {
        Transaction { admin: self.clone(), place, volume, id, proof: Proof::new(self.env().now()) }
    }
}

/// Off line, and deleted with its transaction unless it is published.
pub(crate) const UNPUBLISHED: VolumeFlags =
    VolumeFlags(VolumeFlags::DELETE_ON_SALVAGE.0 | VolumeFlags::OUT_OF_SERVICE.0);

impl Transaction {
    pub(super) async fn call<R: Request>(&self, what: &str, request: &R) -> AdminResult<R::Reply> {
        self.prove(what).await?;
        self.ask(request).await.map_err(|error| self.failed(what, error))
    }

    pub(crate) async fn set_flags(&self, flags: VolumeFlags) -> AdminResult {
        self.call("set the state of", &SetFlags { transaction: self.id, flags }).await
    }

    pub(crate) async fn status(&self) -> AdminResult<HeaderStatus> {
        Ok(self.call("read the header of", &GetStatus { transaction: self.id }).await?.status)
    }

    pub(crate) async fn delete(&self) -> AdminResult {
        self.call("delete", &DeleteVolume { transaction: self.id }).await
    }

    pub(crate) async fn set_info(&self, info: VolumeInfo) -> AdminResult {
        self.call("set the fields of", &SetInfo { transaction: self.id, info }).await
    }

    pub(crate) async fn set_route(&self, route: DataRoute) -> AdminResult {
        self.call("set the way for bytes of", &SetRoute { transaction: self.id, route }).await
    }

    pub(crate) async fn set_placement(&self, placement: Placement) -> AdminResult {
        self.call("set the drives of", &SetPlacement { transaction: self.id, placement }).await
    }

    pub(crate) async fn set_lending(&self, lending: Lending) -> AdminResult {
        self.call("set the leases of", &SetLending { transaction: self.id, lending }).await
    }

    pub(crate) async fn set_privacy(&self, privacy: Privacy) -> AdminResult {
        self.call("set the privacy of", &SetPrivacy { transaction: self.id, privacy }).await
    }

    /// Changes a setting by a call of our own; returns whether the server knows it.
    pub(super) async fn set_if_known(&self, set: &impl Request<Reply = Nothing>) -> AdminResult<bool> {
        let doing = "set a setting of";
        self.prove(doing).await?;
        match self.ask(set).await {
            Ok(_) => Ok(true),
            Err(error) if error.abort_code() == Some(AbortCode::RXGEN_OPCODE) => Ok(false),
            Err(error) => Err(self.failed(doing, error)),
        }
    }

    pub(crate) async fn set_forwarding(&self, to: Ipv4Addr) -> AdminResult {
        self.call("forward the clients of", &SetForwarding { transaction: self.id, site: to }).await
    }

    pub(crate) async fn set_ids(&self, name: &str, kind: VolumeKind, ids: [VolumeId; 3]) -> AdminResult {
        let [parent, clone, backup] = ids;
        let doing = || format!("Could not name volume {} on {}", self.volume, self.place);
        let (name, kind) = (text(name, doing)?, KindNumber::from(kind));
        let request = SetIdsTypes { transaction: self.id, name, kind, parent, clone, backup };
        self.call("name", &request).await
    }

    /// Clones the volume; the clone is off line and is deleted unless it is published.
    pub(crate) async fn clone_as(&self, clone: VolumeId, name: &str, kind: VolumeKind) -> AdminResult {
        let doing = || format!("Could not clone volume {} on {}", self.volume, self.place);
        let request = CloneVolume {
            transaction: self.id,
            purge: VolumeId(0),
            kind: KindNumber::from(kind),
            name: text(name, doing)?,
            volume: clone,
        };
        self.call("clone", &request).await.map(drop)
    }

    /// Brings a clone up to date.
    pub(crate) async fn reclone(&self, clone: VolumeId) -> AdminResult {
        self.call("clone", &ReClone { transaction: self.id, clone }).await
    }

    pub(crate) async fn set_creation(&self, date: UnixSeconds) -> AdminResult {
        self.call("set the date of", &SetDate { transaction: self.id, date }).await
    }

    /// Returns the volume to its file server. A transaction that the server has already ended counts as
    /// success.
    pub(crate) async fn end(&self) -> AdminResult {
        if self.stands().await == Ok(false) {
            return Ok(());
        }
        match self.ask(&EndTrans { transaction: self.id }).await {
            Ok(_) => Ok(()),
            Err(error) if error.abort_code() == Some(GONE) => Ok(()),
            Err(error) => Err(self.failed("end the transaction on", error)),
        }
    }

    /// Ends it whatever the result of the work in it; the work's error takes precedence.
    pub(crate) async fn end_after<T>(&self, outcome: AdminResult<T>) -> AdminResult<T> {
        let ended = self.end().await;
        let value = outcome?;
        ended.map(|()| value)
    }
}

/// Attributes of a volume that is written by a dump.
pub(crate) fn cookie(name: &str, kind: VolumeKind, parent: VolumeId) -> RestoreCookie {
    RestoreCookie {
        name: NameChars::truncated(name.as_bytes()),
        kind: KindNumber::from(kind),
        clone: VolumeId(0),
        parent,
    }
}

fn text(name: &str, doing: impl Fn() -> String) -> AdminResult<NameText> {
    let good = NameText::new(name.as_bytes()).ok().filter(|_| name.len() <= HEADER_NAME_MAX);
    good.ok_or_else(|| AdminError::failed(doing(), format!("'{name}' is too long for a volume's name")))
}

/// Longest name in a volume's header.
const HEADER_NAME_MAX: usize = afs_wire::ids::VolumeName::HEADER_MAX;
