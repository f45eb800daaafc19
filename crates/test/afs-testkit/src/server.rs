//! Server machine of a simulated cell: what outlives its processes, and how they are started.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;

use afs_db::{EmbeddedLocationDb, EmbeddedOperationsDb, LocationDb};
use afs_kv::Kv;
use afs_rpc::{EnvRef, Rx, Security, WeakRx};
use afs_server::{
    DataPathOptions, FileServer, FileServerConfig, Guard, JournalServer, LocationServer, Partitions,
    VolumeServer, VolumeStates,
};
use afs_sim::disk::SimDisk;
use afs_sim::{NodeId, World};
use afs_volume::VolumeStore;
use afs_wire::ids::{PartitionId, Uuid, VolumeId};
use parking_lot::Mutex;

use crate::drives::Drives;
use crate::plan::{ServerPlan, Service};
use crate::{StartError, administrator, net, stores};

/// A server machine. Clones are handles on one.
#[derive(Clone)]
pub struct Server {
    /// The world that it is in.
    pub world: World,
    /// The machine.
    pub node: NodeId,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its disk.
    pub disk: SimDisk,
    /// States of its volumes, for tests that set them.
    pub states: Arc<VolumeStates>,
    plan: Arc<ServerPlan>,
    processes: Arc<Mutex<Option<Processes>>>,
    pub(crate) drives: Arc<Mutex<Drives>>,
}

/// The processes of a machine's present life, as far as tests look into them.
pub struct Processes {
    /// Rx of the file service.
    pub files_rx: WeakRx,
    /// Rx of the databases, if the machine has any.
    pub databases_rx: Option<WeakRx>,
    /// The file service.
    pub files: Weak<FileServer>,
    /// The volume service, if the machine has it.
    pub volumes: Option<Weak<VolumeServer>>,
    /// Its partitions, with the drives to which clients are sent.
    pub partitions: Partitions,
    /// The volumes of its partitions.
    pub stores: BTreeMap<PartitionId, VolumeStore>,
}

impl Server {
    /// A machine with an empty disk, on which nothing runs yet.
    #[must_use]
    pub fn new(world: &World, name: &str, address: Ipv4Addr, plan: ServerPlan) -> Self {
        Self::on(world, world.node(name, address.into()), address, plan)
    }

    /// The same on a machine that the test has made.
    #[must_use]
    pub fn on(world: &World, node: NodeId, address: Ipv4Addr, plan: ServerPlan) -> Self {
        let (world, disk) = (world.clone(), world.disk(node));
        let (states, processes, drives) = (Arc::default(), Arc::default(), Arc::default());
        Self { world, node, address, disk, states, plan: Arc::new(plan), processes, drives }
    }

    /// Its permanent name.
    #[must_use]
    pub fn uuid(&self) -> Uuid {
        Uuid([self.address.octets()[3] | 0x80; 16])
    }

    /// Starts its services on what its disk holds; those on an empty disk make the volumes of the plan. The drives that it was given
    /// in an earlier life are there again.
    ///
    /// # Errors
    /// The disk fails meanwhile, or what is on it cannot be read.
    pub async fn start(&self) -> Result<(), StartError> {
        let env = self.world.env(self.node);
        let mut rows = Vec::new();
        for partition in &self.plan.partitions {
            let name = format!("index{}", partition.0);
            rows.push((*partition, self.index(&env, &name, afs_volume::TABLES)?));
        }
        let databases = if self.offers(Service::Location) { Some(self.open_databases(&env)?) } else { None };
        let mut opened = BTreeMap::new();
        for (partition, rows) in rows {
            let store = stores::volumes(&env, &self.disk, partition, rows, self.plan.sizes).await?;
            opened.insert(partition, store);
        }
        if let (Some(databases), Some(store)) = (&databases, opened.values().next()) {
            self.make_volumes(store, databases).await?;
        }
        let processes = self.serve(&env, opened, databases)?;
        self.drives.lock().attach_again(&env, &processes.partitions)?;
        *self.processes.lock() = Some(processes);
        Ok(())
    }

    /// Starts a machine that has databases with a journal, which keeps their endpoint open, and no file service.
    ///
    /// # Errors
    /// As of [`Server::start`].
    pub fn start_databases(&self) -> Result<(), StartError> {
        let env = self.world.env(self.node);
        let rx = self.bind(&env, 7003);
        let kv = self.open_databases(&env)?;
        let guard = (self.plan.guard)(&env);
        self.serve_databases(&env, &rx, kv, guard)
    }

    /// [`Server::start`], to its end.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_now(&self) {
        let server = self.clone();
        let start = async move { server.start().await.map_err(|error| error.to_string()) };
        let started = self.world.block_on(self.node, START, start);
        if let Err(error) = started.map_err(|hang| hang.to_string()).and_then(|started| started) {
            panic!("the server does not start: {error}");
        }
    }

    /// Power off, on again, and started.
    pub fn restart(&self) {
        self.world.crash(self.node);
        self.world.restart(self.node);
        self.start_now();
    }

    /// Looks into the processes of the present life, if the machine has been started.
    pub fn processes<T>(&self, look: impl FnOnce(&Processes) -> T) -> Option<T> {
        self.processes.lock().as_ref().map(look)
    }

    /// The number of the volume of that name.
    #[must_use]
    pub fn volume(&self, name: &str) -> Option<VolumeId> {
        let stores = self.processes(|processes| processes.stores.clone())?;
        let mut volumes = stores.values().flat_map(VolumeStore::volumes);
        volumes.find(|volume| volume.header().name.to_string() == name).map(|volume| volume.id())
    }

    fn offers(&self, service: Service) -> bool {
        self.plan.services.contains(&service)
    }

    fn index(&self, env: &EnvRef, name: &str, tables: &[&str]) -> Result<Kv, StartError> {
        stores::index(env, &self.disk, name, tables, self.plan.sizes)
    }

    fn open_databases(&self, env: &EnvRef) -> Result<Kv, StartError> {
        self.index(env, "db", afs_db::TABLES)
    }

    fn bind(&self, env: &EnvRef, port: u16) -> Rx {
        let address = SocketAddr::new(self.address.into(), port);
        self.world.rx(self.node, env.clone(), address, self.plan.rx.clone(), self.plan.calls)
    }

    async fn make_volumes(&self, store: &VolumeStore, databases: &Kv) -> Result<(), StartError> {
        if !store.volumes().is_empty() {
            return Ok(());
        }
        let db = EmbeddedLocationDb::new(databases.clone());
        db.register(self.uuid(), vec![self.address]).await?;
        for volume in &self.plan.volumes {
            volume.make(store, &db, self.address).await?;
        }
        Ok(())
    }

    fn serve(
        &self,
        env: &EnvRef,
        stores: BTreeMap<PartitionId, VolumeStore>,
        databases: Option<Kv>,
    ) -> Result<Processes, StartError> {
        let rx = self.bind(env, 7000);
        let volumes_rx = self.offers(Service::Volume).then(|| self.bind(env, 7005));
        let guard = (self.plan.guard)(env);
        let partitions = Partitions::new(stores.clone());
        let files = FileServer::new(FileServerConfig {
            env: env.clone(),
            rx: rx.clone(),
            uuid: self.uuid(),
            partitions: partitions.clone(),
            guard: guard.clone(),
            states: self.states.clone(),
            limits: self.plan.files,
        });
        self.offer(env, &rx, Arc::new((self.plan.file_calls)(files.table())))?;
        if self.offers(Service::Data) {
            files.open_data_path(&self.data_path())?;
        }
        let volumes = match volumes_rx {
            Some(rx) => Some(self.serve_volumes(env, rx, partitions.clone(), &files, guard.clone())?),
            None => None,
        };
        let databases_rx = databases.is_some().then(|| self.bind(env, 7003));
        if let (Some(databases), Some(rx)) = (databases, &databases_rx) {
            self.serve_databases(env, rx, databases, guard)?;
        }
        let processes = Processes {
            files_rx: rx.downgrade(),
            databases_rx: databases_rx.as_ref().map(Rx::downgrade),
            files: Arc::downgrade(&files),
            volumes: volumes.as_ref().map(|(_, server)| Arc::downgrade(server)),
            partitions,
            stores,
        };
        net::keep(env, (rx, volumes, databases_rx, files));
        Ok(processes)
    }

    fn data_path(&self) -> DataPathOptions {
        let listen = SocketAddr::new(self.address.into(), 7100);
        DataPathOptions { listen, addresses: Vec::new(), clear: self.plan.clear_data, minimum_size: 0 }
    }

    fn serve_volumes(
        &self,
        env: &EnvRef,
        rx: Rx,
        partitions: Partitions,
        files: &Arc<FileServer>,
        guard: Guard,
    ) -> Result<(Rx, Arc<VolumeServer>), StartError> {
        let (states, clients) = (self.states.clone(), files.clients().clone());
        let server = VolumeServer::new(env.clone(), partitions, states, clients, guard);
        server.use_data_path(files);
        server.reach_peers(&rx, Arc::new(Security::null));
        self.offer(env, &rx, server.service())?;
        Ok((rx, server))
    }

    fn serve_databases(&self, env: &EnvRef, rx: &Rx, kv: Kv, guard: Guard) -> Result<(), StartError> {
        let db: Arc<dyn LocationDb> = Arc::new(EmbeddedLocationDb::new(kv.clone()));
        self.offer(env, rx, LocationServer::service(env.clone(), db, guard.clone()))?;
        if self.offers(Service::Journal) {
            let db = Arc::new(EmbeddedOperationsDb::new(kv));
            self.offer(env, rx, JournalServer::service(env.clone(), db, guard))?;
            administrator::resume(env, rx.clone(), self.address);
        }
        Ok(())
    }

    /// Offers a service for as long as its endpoint is kept.
    fn offer(&self, env: &EnvRef, rx: &Rx, service: Arc<dyn afs_rpc::Service>) -> Result<(), StartError> {
        Ok(rx.listen_with(service, (self.plan.classes)(env))?)
    }
}

/// Virtual time that a start may take.
const START: Duration = Duration::from_secs(300);
