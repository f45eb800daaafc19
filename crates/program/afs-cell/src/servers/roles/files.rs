//! Role of a file server: the file service and the volume service over the partitions of a host.

use super::{BosRole, Host, Role, SocketServices, bind_server};
use crate::configuration::options::ServerOptions;
use crate::configuration::ports::Ports;
use crate::error::CellResult;
use crate::servers::DataPathState;
use crate::servers::held_volumes::HeldHere;
use afs_admin::scheduled::Snapshotter;
use afs_admin::{Fencing, HeldVolumes};
use afs_net::{System, Udp};
use afs_rpc::Service;
use afs_server::{FileServer, FileServerConfig, FileServerLimits, VolumeServer, VolumeStates};
use afs_wire::rpc::ServiceId;
use std::sync::Arc;

/// The file service and the volume service, each at a port of its own.
pub(super) struct FileServices {
    file: Udp,
    volume: Udp,
    of_files: Vec<Arc<dyn Service>>,
    of_volumes: Vec<Arc<dyn Service>>,
    /// Present after the start.
    server: Option<Arc<FileServer>>,
    volumes: Option<Arc<HeldHere>>,
    data_path: DataPathState,
}

impl FileServices {
    /// Binds both ports.
    ///
    /// # Errors
    /// As [`bind_at`](super::bind_at).
    pub(super) fn bind(system: &Arc<System>, options: &ServerOptions) -> CellResult<Self> {
        Ok(Self {
            file: bind_server(system, options, options.ports.file())?,
            volume: bind_server(system, options, options.ports.volume())?,
            of_files: Vec::new(),
            of_volumes: Vec::new(),
            server: None,
            volumes: None,
            data_path: DataPathState::Off,
        })
    }
}

impl Role for FileServices {
    /// Both services work on the same volumes and notify the same clients.
    fn start(&mut self, host: &Host<'_>) -> CellResult {
        let env = host.system.env();
        let admin = host.admin(self.volume.rx(), &host.options.location_servers());
        env.spawn(Box::pin(Snapshotter::new(admin, host.options.listen).run()));
        let (partitions, states) = (host.stores.partitions(), Arc::new(VolumeStates::default()));
        let server = FileServer::new(FileServerConfig {
            env: env.clone(),
            rx: self.file.rx().clone(),
            uuid: host.uuid,
            partitions: partitions.clone(),
            guard: host.guard.clone(),
            states: states.clone(),
            limits: FileServerLimits::default(),
        });
        server.tell_process_size(crate::process::resident_bytes);
        let clients = server.clients().clone();
        states.unsettle();
        let volumes = VolumeServer::new(env, partitions.clone(), states.clone(), clients, host.guard.clone());
        let security = host.security.clone();
        volumes.use_data_path(&server);
        volumes.reach_peers(self.volume.rx(), Arc::new(move || security.of_servers()));
        self.of_files = vec![server.service()];
        self.of_volumes = vec![volumes.service()];
        self.data_path = open_data_path(&server, host.options);
        self.server = Some(server);
        let databases = host.stores.protection().clone();
        self.volumes = Some(Arc::new(HeldHere { volumes, states, databases }));
        Ok(())
    }

    fn begin(&self, host: &Host<'_>) {
        let Some(volumes) = &self.volumes else { return };
        let admin = host.admin(self.volume.rx(), &host.options.location_servers());
        let held: Arc<dyn HeldVolumes> = volumes.clone();
        let fencing = Fencing::new(admin, host.options.listen, Arc::downgrade(&held));
        host.system.env().spawn(Box::pin(fencing.run()));
    }

    fn offers(&self) -> Vec<SocketServices<'_>> {
        vec![
            SocketServices { socket: &self.file, services: &self.of_files },
            SocketServices { socket: &self.volume, services: &self.of_volumes },
        ]
    }

    fn for_owner(&self, ports: Ports) -> Vec<(ServiceId, u16)> {
        vec![(ServiceId::FILE, ports.file()), (ServiceId::VOLUME, ports.volume())]
    }

    fn overseen(&self) -> &'static [BosRole] {
        &[BosRole::Files]
    }

    fn data_path(&self) -> DataPathState {
        self.data_path.clone()
    }

    fn file_server(&self) -> Option<&Arc<FileServer>> {
        self.server.as_ref()
    }

    fn stop(self: Box<Self>, system: &System) {
        if let Some(server) = &self.server {
            // Clients send what they hold by calls.
            system.block_on(server.recall_leases());
        }
        self.file.shutdown();
        self.volume.shutdown();
        if let Some(server) = self.server {
            server.close_data_path();
            system.block_on(server.settle());
        }
    }
}

/// A file server without its data path serves all the same: clients use calls.
fn open_data_path(server: &Arc<FileServer>, options: &ServerOptions) -> DataPathState {
    let Some(wanted) = &options.data_path else { return DataPathState::Off };
    match server.open_data_path(wanted) {
        Ok(at) => DataPathState::At(at),
        Err(error) => {
            tracing::warn!(at = %wanted.listen, %error, "the data path cannot be opened; clients use calls");
            DataPathState::Failed(format!("cannot listen at {}: {error}", wanted.listen))
        }
    }
}
