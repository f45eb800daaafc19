//! The stores of one server, and the services over them.

use crate::cell::audit_log::AuditLog;
use crate::cell::login_stores::{LoginRecords, LoginUsers};
use crate::cell::secret_file;
use crate::cell::security::{ADMIN_NAME, CellSecurity, random};
use crate::cell::server::ServerOptions;
use crate::error::{CommandError, CommandResult};
use afs_db::{
    EmbeddedLocationDb, EmbeddedLoginDb, EmbeddedProtectionDb, LocationDb, ProtectionDb, bootstrap_protection,
};
use afs_drive::FileDrive;
use afs_kv::{FileMedium, Kv};
use afs_login::{KeyMint, Lifetimes, LoginConfig, LoginSecret, LoginServer};
use afs_net::System;
use afs_rpc::Service;
use afs_server::{
    Audit, AuditOptions, BosServer, CellSpec, FileServer, FileServerConfig, FileServerLimits, Guard,
    LocationServer, Overseen, Partitions, ProtectionNames, ProtectionOptions, ProtectionServer, Role,
    VolumeServer, VolumeStates, bootstrap,
};
use afs_volume::VolumeStore;
use afs_wire::ids::{PartitionId, UnixSeconds, Uuid};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The partition a cell of one server has.
const PARTITION: PartitionId = PartitionId(0);
/// The program that plays all roles, as `bos status -long` shows it: without its arguments, which are its owner's.
const COMMAND: &str = "andrew";
/// The login service's secret, in the state directory.
const LOGIN_SECRET: &str = "keys/login";

/// The stores of one server.
pub(super) struct Stores {
    directory: PathBuf,
    location: Arc<dyn LocationDb>,
    protection: Arc<dyn ProtectionDb>,
    login: EmbeddedLoginDb,
    partitions: Partitions,
}

impl Stores {
    pub(super) async fn open(system: &Arc<System>, directory: &Path) -> CommandResult<Self> {
        let partition = directory.join("vicepa");
        std::fs::create_dir_all(&partition).map_err(|e| cannot_open(&partition, e))?;
        let db = index(system, &directory.join("db"), afs_db::TABLES)?;
        let volumes = volumes(system, &partition).await?;
        Ok(Self {
            directory: directory.to_owned(),
            location: Arc::new(EmbeddedLocationDb::new(db.clone())),
            protection: Arc::new(EmbeddedProtectionDb::new(db.clone())),
            login: EmbeddedLoginDb::new(db),
            partitions: Partitions::new([(PARTITION, volumes)]),
        })
    }

    /// What stands before every service: names from the database, requirements, the audit log.
    pub(super) fn guard(&self, system: &Arc<System>, security: &CellSecurity) -> Guard {
        let names = ProtectionNames::new(self.protection.clone(), security.local_names());
        let settings = security.file().audit;
        let audit = if settings.enabled {
            let options = AuditOptions { everything: settings.reads, ..AuditOptions::default() };
            Audit::new(system.env(), Arc::new(AuditLog::of(&self.directory)), options)
        } else {
            Audit::off()
        };
        Guard::new(Arc::new(names)).with_policy(security.policy().clone()).with_audit(audit)
    }

    /// The file service and the volume service, which work on the same volumes and tell the same clients.
    pub(super) fn volume_services(
        &self,
        system: &Arc<System>,
        rx: &afs_rpc::Rx,
        uuid: Uuid,
        guard: &Guard,
    ) -> (Arc<dyn Service>, Arc<dyn Service>) {
        let states = Arc::new(VolumeStates::default());
        let file = FileServer::new(FileServerConfig {
            env: system.env(),
            rx: rx.clone(),
            uuid,
            partitions: self.partitions.clone(),
            guard: guard.clone(),
            states: states.clone(),
            limits: FileServerLimits::default(),
        });
        let clients = file.clients().clone();
        let volume = VolumeServer::new(system.env(), self.partitions.clone(), states, clients, guard.clone());
        (file.service(), volume.service())
    }

    pub(super) fn location_service(&self, system: &Arc<System>, guard: &Guard) -> Arc<dyn Service> {
        LocationServer::service(system.env(), self.location.clone(), guard.clone())
    }

    pub(super) fn protection_service(&self, security: &CellSecurity, guard: &Guard) -> Arc<dyn Service> {
        let options = ProtectionOptions { local: security.local_names(), ..ProtectionOptions::default() };
        ProtectionServer::service(self.protection.clone(), guard.clone(), options)
    }

    /// What tells of the other services.
    pub(super) fn overseer_service(
        &self,
        system: &Arc<System>,
        options: &ServerOptions,
        guard: &Guard,
    ) -> Arc<dyn Service> {
        let overseen = Overseen {
            cell: options.cell.clone(),
            hosts: vec![options.listen.to_string()],
            roles: vec![Role::Protection, Role::Locations, Role::Files],
            command: COMMAND.to_owned(),
        };
        BosServer::service(&system.env(), overseen, self.protection.clone(), guard.clone())
    }

    /// The cell's own login service, with the secret it has kept or a new one.
    pub(super) fn login_service(
        &self,
        system: &Arc<System>,
        options: &ServerOptions,
        security: &CellSecurity,
    ) -> CommandResult<Arc<dyn Service>> {
        let hours = |hours: u32| Duration::from_secs(u64::from(hours) * 3600);
        let settings = security.file().login;
        let server = LoginServer::new(LoginConfig {
            env: system.env(),
            cell: options.cell.clone(),
            secret: self.login_secret(system)?,
            lifetimes: Lifetimes {
                token: hours(settings.token_hours),
                renewable: hours(settings.renewable_hours),
            },
            store: Arc::new(LoginRecords(self.login.clone())),
            users: Arc::new(LoginUsers(self.protection.clone())),
            mint: Arc::new(KeyMint { keys: security.keys().clone(), random: random(system) }),
        });
        Ok(server.service())
    }

    fn login_secret(&self, system: &Arc<System>) -> CommandResult<LoginSecret> {
        let path = self.directory.join(LOGIN_SECRET);
        if let Some(kept) = secret_file::read(&path)? {
            return LoginSecret::decode(&kept)
                .map_err(|e| CommandError::failed(format!("{}: {e}", path.display())));
        }
        let secret = LoginSecret::generate(&random(system));
        secret_file::write(&path, &secret.encode())?;
        Ok(secret)
    }

    /// Registers the server, and makes what a new cell begins with.
    pub(super) async fn first_start(&self, options: &ServerOptions, uuid: Uuid) -> CommandResult {
        let cell = CellSpec {
            cell: options.cell.clone(),
            server: uuid,
            addresses: vec![options.listen],
            partition: PARTITION,
            anyuser: options.anyuser,
            quota: 0,
        };
        let cannot = |e: &dyn Display| CommandError::failed(format!("cannot make the cell: {e}"));
        bootstrap_protection(&*self.protection, ADMIN_NAME).await.map_err(|e| cannot(&e))?;
        bootstrap(&*self.location, &self.partitions, &cell).await.map(drop).map_err(|e| cannot(&e))
    }
}

/// The volumes of a partition. What an earlier crash left behind is cleared away beside the work.
async fn volumes(system: &Arc<System>, partition: &Path) -> CommandResult<VolumeStore> {
    let rows = index(system, &partition.join("index"), afs_volume::TABLES)?;
    let drive_at = partition.join("drive");
    let drive =
        FileDrive::open_directory(&drive_at, runner(system)).map_err(|e| cannot_open(&drive_at, e))?;
    let env = system.env();
    let clock = env.clone();
    let config = afs_volume::Config::new(move || UnixSeconds(clock.wall().secs_u32()));
    let volumes = VolumeStore::open(rows, Arc::new(drive), config).await;
    let volumes = volumes.map_err(|e| cannot_open(partition, e))?;
    env.spawn(Box::pin(volumes.clone().run_background()));
    let sweeping = volumes.clone();
    env.spawn(Box::pin(async move {
        if let Err(error) = sweeping.sweep().await {
            tracing::warn!("what an earlier crash left on the drive could not be freed: {error}");
        }
    }));
    Ok(volumes)
}

/// Blocking work of the stores goes to the system's pool.
fn runner(system: &Arc<System>) -> Arc<impl Fn(Box<dyn FnOnce() + Send>) + Send + Sync + 'static> {
    let env = system.env();
    Arc::new(move |job: Box<dyn FnOnce() + Send>| env.blocking(job))
}

fn index(system: &Arc<System>, directory: &Path, tables: &[&'static str]) -> CommandResult<Kv> {
    let medium = FileMedium::open(directory).map_err(|e| cannot_open(directory, e))?;
    Kv::open(Arc::new(medium), tables, runner(system), afs_kv::Config::default())
        .map_err(|e| cannot_open(directory, e))
}

fn cannot_open(what: &Path, error: impl Display) -> CommandError {
    CommandError::failed(format!("cannot open {}: {error}", what.display()))
}
