//! `setmodes` and the private home of a user: what a volume withholds, set at its file server.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use afs_rpc::{CallError, Caller, Connection, EnvExt, Table};
use afs_wire::acl::{NamedAcl, NamedEntry};
use afs_wire::cb::{self, InterfaceAddr};
use afs_wire::error::AbortCode;
use afs_wire::fs::{Capabilities, SetStatus, StoreAcl, StoreStatus};
use afs_wire::ids::{Fid, Mode, Rights, Uuid, ViceId, VolumeId};
use afs_wire::rpc::ServiceId;
use afs_wire::vol::{GetPrivacy, Modes, Privacy};

use crate::calls::Attach;
use crate::error::{AdminError, AdminResult};
use crate::{Admin, ServerPartition};

/// The volume service's port, counted from that of the file service.
const VOLUME_AFTER_FILE: u16 = 5;

/// The user of a home.
#[derive(Clone, Debug)]
pub struct HomeOwner {
    /// The name.
    pub name: String,
    /// The id in the protection database.
    pub id: ViceId,
}

impl Admin {
    /// Sets whether modes close directories of a read-write volume.
    ///
    /// # Errors
    /// As [`Admin::set_route`].
    pub async fn set_modes(&self, volume: &str, modes: Modes) -> AdminResult {
        let doing = format!("Could not set the modes of {volume}");
        let (group, home) = self.read_write(&doing, volume).await?;
        let held = self.take_existing(home, group.id(), Attach::BUSY).await?;
        let set = async {
            // Within the transaction, which nobody closes a directory's past beside.
            let privacy = self.privacy_at(&doing, home, group.id()).await?;
            let privacy = Privacy { modes, ..privacy };
            held.set_privacy(privacy).await
        };
        let set = set.await;
        held.end_after(set).await
    }

    /// Whether modes close directories of a read-write volume.
    ///
    /// # Errors
    /// No such volume, or a server that fails or is not Andrew's.
    pub async fn modes(&self, volume: &str) -> AdminResult<Modes> {
        let doing = format!("Could not look at the modes of {volume}");
        let (group, home) = self.read_write(&doing, volume).await?;
        Ok(self.privacy_at(&doing, home, group.id()).await?.modes)
    }

    async fn privacy_at(&self, doing: &str, home: ServerPartition, volume: VolumeId) -> AdminResult<Privacy> {
        let told = self.at(home.server, &GetPrivacy { volume }).await;
        let told = told.map_err(|error| AdminError::call(doing, Some(home.server), error))?;
        Ok(told.privacy)
    }

    /// Makes a new volume a user's own: the user and administrators have all rights in its root, others none, and the user owns it.
    ///
    /// # Errors
    /// The file server's refusal.
    pub async fn give_home(&self, server: Ipv4Addr, volume: VolumeId, owner: &HomeOwner) -> AdminResult {
        let doing = format!("Could not give volume {volume} to {}", owner.name);
        let failed = |error: CallError| AdminError::call(&doing, Some(server), error);
        let (files, fid) = (self.file_server(server), Fid::root(volume));
        // A file server asks its clients who they are; a second time this transport listens already.
        _ = self.rx().listen(Arc::new(callbacks(Uuid(self.env().random_bytes()))));
        let all = |name: &str| NamedEntry { name: name.into(), rights: Rights::ALL };
        let positive = vec![all(&owner.name), all("system:administrators")];
        let list = NamedAcl { positive, negative: Vec::new() };
        let acl = list.to_opaque().map_err(|_| AdminError::refused(&doing, "the name is too long"))?;
        files.call(&StoreAcl { fid, acl }).await.map_err(failed)?;
        let status = SetStatus { owner: Some(owner.id), mode: Some(Mode(0o700)), ..SetStatus::default() };
        files.call(&StoreStatus { fid, status }).await.map_err(failed)?;
        Ok(())
    }

    /// The file service of a server.
    fn file_server(&self, server: Ipv4Addr) -> Connection {
        let port = self.cell().volume_port.saturating_sub(VOLUME_AFTER_FILE);
        self.rx().connection(SocketAddr::from((server, port)), ServiceId::FILE, self.security().clone())
    }
}

/// What a client that keeps nothing replies to a file server.
fn callbacks(uuid: Uuid) -> Table<()> {
    Table::new(ServiceId::CALLBACK, Arc::new(()))
        .call::<cb::CallBack, _, _, AbortCode>(|_, _: Caller, _| async { Ok(()) })
        .call::<cb::InitCallBackState3, _, _, AbortCode>(|_, _: Caller, _| async { Ok(()) })
        .call::<cb::TellMeAboutYourself, _, _, AbortCode>(move |_, _: Caller, _| async move {
            let addresses = InterfaceAddr { uuid, ..InterfaceAddr::default() };
            Ok(cb::TellMeAboutYourselfReply { addresses, capabilities: Capabilities::first_of([1]) })
        })
}
