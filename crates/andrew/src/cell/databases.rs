//! The databases of a cell, on a host that serves them, and the services over them.

use crate::cell::login_stores::{LoginRecords, LoginUsers};
use crate::cell::options::{DatabasePlace, ServerOptions};
use crate::cell::secret_file;
use crate::cell::security::{CellSecurity, random};
use crate::cell::stores::{cannot_open, index};
use crate::error::{CommandError, CommandResult};
use afs_db::{EmbeddedLocationDb, EmbeddedLoginDb, EmbeddedProtectionDb, LocationDb, LoginDb, ProtectionDb};
use afs_login::{KeyMint, Lifetimes, LoginConfig, LoginSecret, LoginServer};
use afs_net::System;
use afs_rpc::Service;
use afs_server::{Guard, LocationServer, ProtectionOptions, ProtectionServer};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The login service's secret, in the state directory.
pub(super) const LOGIN_SECRET: &str = "keys/login";

/// The databases of a cell.
pub(super) struct Databases {
    directory: PathBuf,
    pub(super) location: Arc<dyn LocationDb>,
    pub(super) protection: Arc<dyn ProtectionDb>,
    login: Arc<dyn LoginDb>,
}

impl Databases {
    /// Opens them where they are.
    pub(super) fn open(system: &Arc<System>, options: &ServerOptions) -> CommandResult<Self> {
        match options.database {
            DatabasePlace::Embedded => Self::embedded(system, options),
        }
    }

    fn embedded(system: &Arc<System>, options: &ServerOptions) -> CommandResult<Self> {
        let directory = options.directory.join("db");
        std::fs::create_dir_all(&directory).map_err(|e| cannot_open(&directory, e))?;
        let db = index(system, &directory, afs_db::TABLES)?;
        Ok(Self {
            directory: options.directory.clone(),
            location: Arc::new(EmbeddedLocationDb::new(db.clone())),
            protection: Arc::new(EmbeddedProtectionDb::new(db.clone())),
            login: Arc::new(EmbeddedLoginDb::new(db)),
        })
    }

    pub(super) fn location_service(&self, system: &Arc<System>, guard: &Guard) -> Arc<dyn Service> {
        LocationServer::service(system.env(), self.location.clone(), guard.clone())
    }

    pub(super) fn protection_service(&self, security: &CellSecurity, guard: &Guard) -> Arc<dyn Service> {
        let options = ProtectionOptions { local: security.local_names(), ..ProtectionOptions::default() };
        ProtectionServer::service(self.protection.clone(), guard.clone(), options)
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
}
