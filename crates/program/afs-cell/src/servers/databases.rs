//! Databases of a cell on a host that serves them, and the services over them.

use crate::configuration::options::{DatabaseLocation, EtcdOptions, ServerOptions};
use crate::error::CellResult;
use crate::servers::StartError;
use crate::servers::import::Importer;
use crate::servers::login_stores::{LoginAudit, LoginRecords, LoginUsers};
use crate::servers::security::CellSecurity;
use crate::servers::shared_rows::{self, EMBEDDED, embedded_rows};
use afs_db::journal::{EmbeddedOperationsDb, OperationsDb, StoredOperationsDb};
use afs_db::protection::StoredProtectionDb;
use afs_db::shared::{Freshness, SharedDatabase, Sharing};
use afs_db::{
    EmbeddedLocationDb, EmbeddedLoginDb, EmbeddedProtectionDb, LocationDb, LoginDb, ProtectionDb,
    StoredLocationDb, StoredLoginDb,
};
use afs_files::secret_file;
use afs_kv::Kv;
use afs_login::{KeyMint, Lifetimes, LoginConfig, LoginSecret, LoginServer};
use afs_net::System;
use afs_rpc::Service;
use afs_server::location::HasQuorum;
use afs_server::{Guard, JournalServer, LocationServer, ProtectionOptions, ProtectionServer};
use afs_wire::ids::Uuid;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// File of the login service's secret, in the state directory.
pub(crate) const LOGIN_SECRET: &str = "keys/login";

/// The databases of a cell.
pub(super) struct Databases {
    directory: PathBuf,
    pub(super) location: Arc<dyn LocationDb>,
    /// Database of the protection service.
    pub(super) protection: Arc<dyn ProtectionDb>,
    /// Database for identity look-ups of the other services: never waits for another host.
    pub(super) names: Arc<dyn ProtectionDb>,
    login: Arc<dyn LoginDb>,
    operations: Arc<dyn OperationsDb>,
    pub(super) importer: Importer,
    /// The shared store, where several servers share the databases.
    sharing: Option<Arc<Sharing>>,
    /// The index in the state directory, where they do not.
    pub(super) index: Option<Kv>,
}

impl Databases {
    /// Opens the databases at their location. `server` is the UUID of this host.
    pub(super) async fn open(
        system: &Arc<System>,
        options: &ServerOptions,
        server: Uuid,
    ) -> CellResult<Self> {
        match &options.database {
            DatabaseLocation::Embedded => Self::embedded(system, options),
            DatabaseLocation::Etcd(place) => Self::shared(system, options, place, server).await,
        }
    }

    fn embedded(system: &Arc<System>, options: &ServerOptions) -> CellResult<Self> {
        let db = embedded_rows(system, &options.directory.join(EMBEDDED))?;
        let protection: Arc<dyn ProtectionDb> = Arc::new(EmbeddedProtectionDb::new(db.clone()));
        let importer = Importer {
            locations: Arc::new(EmbeddedLocationDb::new(db.clone())),
            people: Arc::new(EmbeddedProtectionDb::new(db.clone())),
        };
        Ok(Self {
            directory: options.directory.clone(),
            location: Arc::new(EmbeddedLocationDb::new(db.clone())),
            names: protection.clone(),
            protection,
            login: Arc::new(EmbeddedLoginDb::new(db.clone())),
            operations: Arc::new(EmbeddedOperationsDb::new(db.clone())),
            importer,
            sharing: None,
            index: Some(db),
        })
    }

    async fn shared(
        system: &Arc<System>,
        options: &ServerOptions,
        place: &EtcdOptions,
        server: Uuid,
    ) -> CellResult<Self> {
        let sharing = shared_rows::open(system, place, server).await?;
        shared_rows::take_over(system, &sharing, options).await?;
        let people = |freshness| -> Arc<dyn ProtectionDb> {
            Arc::new(StoredProtectionDb::over(sharing.rows(SharedDatabase::Protection, freshness)))
        };
        let locations = sharing.rows(SharedDatabase::Locations, Freshness::Confirmed);
        let operations = sharing.rows(SharedDatabase::Operations, Freshness::Confirmed);
        let login = sharing.rows(SharedDatabase::Login, Freshness::ConfirmedWithin);
        let importer = Importer {
            locations: Arc::new(StoredLocationDb::over(locations.clone())),
            people: Arc::new(StoredProtectionDb::over(
                sharing.rows(SharedDatabase::Protection, Freshness::ConfirmedWithin),
            )),
        };
        let databases = Self {
            directory: options.directory.clone(),
            location: Arc::new(StoredLocationDb::over(locations)),
            protection: people(Freshness::ConfirmedWithin),
            names: people(Freshness::Followed),
            login: Arc::new(StoredLoginDb::over(login.clone())),
            operations: Arc::new(StoredOperationsDb::over(operations)),
            importer,
            sharing: Some(sharing),
            index: None,
        };
        let secret = databases.login_secret(system)?;
        shared_rows::check_membership(&login, &secret, &options.cell).await?;
        Ok(databases)
    }

    /// Enters this host's file server with its address.
    pub(super) async fn register(&self, server: Uuid, listen: Ipv4Addr) -> CellResult {
        let registered = self.location.register(server, vec![listen]).await;
        registered.map_err(|error| StartError::FirstStart(error.to_string()))?;
        Ok(())
    }

    /// Whether changes can be made, as far as this host knows.
    pub(super) fn has_quorum(&self) -> HasQuorum {
        let sharing = self.sharing.clone();
        Arc::new(move || sharing.as_ref().is_none_or(|sharing| sharing.has_quorum()))
    }

    pub(super) fn location_service(&self, system: &Arc<System>, guard: &Guard) -> Arc<dyn Service> {
        LocationServer::service(system.env(), self.location.clone(), guard.clone())
    }

    /// The journal of operations on volumes.
    pub(super) fn operations_service(&self, system: &Arc<System>, guard: &Guard) -> Arc<dyn Service> {
        JournalServer::service(system.env(), self.operations.clone(), guard.clone())
    }

    pub(super) fn protection_service(
        &self,
        system: &Arc<System>,
        security: &CellSecurity,
        guard: &Guard,
    ) -> Arc<dyn Service> {
        let options = ProtectionOptions { local: security.local_names(), ..ProtectionOptions::default() };
        ProtectionServer::service(system.env(), self.protection.clone(), guard.clone(), options)
    }

    /// The cell's own login service, with its existing secret or a new one.
    pub(super) fn login_service(
        &self,
        system: &Arc<System>,
        options: &ServerOptions,
        security: &CellSecurity,
        guard: &Guard,
    ) -> CellResult<Arc<dyn Service>> {
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
            mint: Arc::new(KeyMint { keys: security.keys().clone(), env: system.env() }),
            recorder: Arc::new(LoginAudit(guard.audit().clone())),
        });
        Ok(server.service())
    }

    fn login_secret(&self, system: &Arc<System>) -> CellResult<LoginSecret> {
        let path = self.directory.join(LOGIN_SECRET);
        if let Some(kept) = secret_file::read(&path)? {
            return LoginSecret::decode(&kept)
                .map_err(|error| StartError::LoginSecret { path, error }.into());
        }
        let secret = LoginSecret::generate(&system.env());
        secret_file::write(&path, &secret.encode())?;
        Ok(secret)
    }
}
