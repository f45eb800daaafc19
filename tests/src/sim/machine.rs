//! Simulated server machine: its disk, and the start of its services.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use afs_db::{EmbeddedLocationDb, LocationDb, Proposal, ProposedSite, entry_flags, site_flags};
use afs_drive::SegmentDrive;
use afs_kv::Kv;
use afs_rpc::{EnvRef, ServerSecurity, Service, WeakRx};
use afs_server::location::LocationServer;
use afs_server::{Audit, AuditOptions, FileServer, FileServerConfig, Guard, Partitions, VolumeStates};
use afs_sim::NodeId;
use afs_sim::disk::SimDisk;
use afs_volume::{VolumeSpec, VolumeStore};
use afs_wire::acl::Acl;
use afs_wire::ids::{Rights, Uuid, ViceId, VolumeId, VolumeName};
use parking_lot::Mutex;

use super::cell::{SERVER, SetupError};
use super::identities::{Keys, UserDirectory};
use super::ledger::Ledger;
use super::settings::CellSettings;

/// A server machine with all state that outlives its processes.
#[derive(Clone)]
pub struct Machine {
    /// The world of the machine.
    pub world: afs_sim::World,
    /// The machine.
    pub node: NodeId,
    /// Its disk.
    pub disk: SimDisk,
    /// Settings of the cell.
    pub settings: Arc<CellSettings>,
    /// Calls that the server carried out.
    pub ledger: Ledger,
    /// Volume states, for tests that set them.
    pub states: Arc<VolumeStates>,
    pub(super) keys: Arc<Keys>,
    pub(super) inside: Arc<Mutex<Option<Inside>>>,
    /// Rx endpoints of the client machines.
    pub(super) clients: Arc<Mutex<Vec<WeakRx>>>,
}

/// The running processes of the machine, for tests that inspect them.
pub struct Inside {
    /// Rx endpoint of the file service.
    pub files_rx: WeakRx,
    /// Rx endpoint of the location service.
    pub locations_rx: WeakRx,
    /// The file service.
    pub files: Weak<FileServer>,
    /// The volume of the cell.
    pub volume: VolumeId,
}

impl Machine {
    /// Starts the servers on the contents of the disk; on an empty disk a cell with one volume is created first.
    ///
    /// # Errors
    /// The disk fails during the start, or its contents are invalid.
    pub async fn start(&self) -> Result<(), SetupError> {
        let (env, disk) = (self.world.env(self.node), &self.disk);
        let rows = self.index(&env, "index", afs_volume::TABLES)?;
        let db: Arc<dyn LocationDb> =
            Arc::new(EmbeddedLocationDb::new(self.index(&env, "db", afs_db::TABLES)?));
        let drive = Arc::new(SegmentDrive::open(disk.segments("drive"), env.clone(), SEGMENT_BYTES)?);
        let store = VolumeStore::open(rows, drive, env.clone(), afs_volume::Config::default()).await?;
        env.spawn(Box::pin(store.clone().run_background()));
        let sweeping = store.clone();
        env.spawn(Box::pin(async move {
            // An error here means that the disk has failed, which the next change to the store reports too.
            let _ = sweeping.sweep().await;
        }));
        if store.volumes().is_empty() {
            self.make_volume(&store, db.as_ref()).await?;
        }
        self.serve(&env, store, db)
    }

    fn index(&self, env: &EnvRef, name: &str, tables: &[&str]) -> Result<Kv, SetupError> {
        let cache_bytes = self.settings.index_cache;
        let config = afs_kv::Config { log_bytes: LOG_BYTES, cache_bytes, ..afs_kv::Config::default() };
        Ok(Kv::open(Arc::new(self.disk.medium(name)), tables, env.clone(), config)?)
    }

    /// Inspects the running processes, if the machine has been started.
    pub fn inside<T>(&self, look: impl FnOnce(&Inside) -> T) -> Option<T> {
        self.inside.lock().as_ref().map(look)
    }

    pub(super) fn note_client(&self, rx: &afs_rpc::Rx) {
        self.clients.lock().push(rx.downgrade());
    }

    async fn make_volume(&self, store: &VolumeStore, db: &dyn LocationDb) -> Result<(), SetupError> {
        db.register(SERVER_UUID, vec![SERVER]).await?;
        let id = match db.entry(afs_db::EntryKey::Name(VOLUME.to_owned())).await {
            Ok(located) => located.entry.ids[0],
            Err(_) => enter_volume(db).await?,
        };
        let entries = vec![(ViceId::AUTHUSER, Rights::ALL), (ViceId::ANYUSER, self.settings.anyuser)];
        let spec = VolumeSpec {
            id,
            name: volume_name(),
            owner: ViceId(1),
            max_quota: 0,
            kind: afs_wire::ids::VolumeKind::ReadWrite,
            parent: id,
            root: Some(Acl::new(entries, Vec::new())?),
        };
        store.create_volume(spec).await?;
        Ok(())
    }

    fn serve(&self, env: &EnvRef, store: VolumeStore, db: Arc<dyn LocationDb>) -> Result<(), SetupError> {
        let bind = |port| {
            let address = SocketAddr::new(SERVER.into(), port);
            self.world.rx(self.node, env.clone(), address, self.settings.rx.clone(), self.settings.calls)
        };
        let volume = store.volumes().first().map(|volume| volume.id()).ok_or("no volume")?;
        let rx = bind(7000);
        let audit = Audit::new(env.clone(), Arc::new(self.ledger.clone()), AuditOptions::default());
        let guard = Guard::new(Arc::new(UserDirectory)).with_audit(audit);
        let files = FileServer::new(FileServerConfig {
            env: env.clone(),
            rx: rx.clone(),
            uuid: SERVER_UUID,
            partitions: Partitions::one(store),
            guard: guard.clone(),
            states: self.states.clone(),
            limits: self.settings.files,
        });
        self.offer(env, &rx, files.service())?;
        let locations = bind(7003);
        self.offer(env, &locations, LocationServer::service(env.clone(), db, guard))?;
        let inside = Inside {
            files_rx: rx.downgrade(),
            locations_rx: locations.downgrade(),
            files: Arc::downgrade(&files),
            volume,
        };
        *self.inside.lock() = Some(inside);
        // Kept until the processes of the machine end.
        env.spawn(Box::pin(async move {
            let _held = (rx, locations, files);
            std::future::pending::<()>().await;
        }));
        Ok(())
    }

    /// Offers a service as the product does: without security, and under rxgk.
    fn offer(&self, env: &EnvRef, rx: &afs_rpc::Rx, service: Arc<dyn Service>) -> Result<(), SetupError> {
        let classes: Vec<Box<dyn ServerSecurity>> =
            vec![Box::new(afs_rx::NullServer), self.keys.server_class(env)];
        Ok(rx.listen_with(service, classes)?)
    }
}

async fn enter_volume(db: &dyn LocationDb) -> Result<VolumeId, SetupError> {
    let id = db.new_volume_ids(3).await?;
    let site = ProposedSite { address: SERVER, partition: 0, flags: i32::from(site_flags::READ_WRITE) };
    let proposal = Proposal {
        name: VOLUME.to_owned(),
        ids: [id, VolumeId(0), VolumeId(0)],
        clone: VolumeId(0),
        flags: entry_flags::RW_EXISTS,
        sites: vec![site],
    };
    db.create(proposal).await?;
    Ok(id)
}

/// Name of the cell's volume.
pub(super) fn volume_name() -> VolumeName {
    VolumeName::new(VOLUME).unwrap_or_else(|error| panic!("{error}"))
}

const VOLUME: &str = "root.cell";
const SERVER_UUID: Uuid = Uuid([0x5e; 16]);
/// Small, so that every run includes checkpoints.
const LOG_BYTES: u64 = 64 << 10;
const SEGMENT_BYTES: u64 = 1 << 20;
