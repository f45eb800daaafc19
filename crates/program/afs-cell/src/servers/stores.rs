//! The stores of one host: databases and partitions.

use crate::configuration::options::{PartitionDirectory, RoleName};
use crate::error::CellResult;
use crate::servers::StartError;
use crate::servers::audit_log::AuditLog;
use crate::servers::databases::Databases;
use crate::servers::error::cannot_open;
use crate::servers::index::index;
use crate::servers::partition_admission::Admission;
use crate::servers::remote_databases::RemoteDatabases;
use crate::servers::security::{ADMIN_NAME, CellSecurity};
use afs_db::{ProtectionDb, bootstrap_protection};
use afs_drive::FileDrive;
use afs_kv::Kv;
use afs_net::System;
use afs_rpc::EnvExt;
use afs_server::scrub::Scrubber;
use afs_server::{Audit, AuditOptions, CellSpec, Guard, Partitions, ProtectionNames, bootstrap};
use afs_volume::VolumeStore;
use afs_wire::ids::Uuid;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The stores of one host.
pub(super) struct Stores {
    directory: PathBuf,
    /// On a host that serves them.
    databases: Option<Databases>,
    /// Users and groups: from the databases here, or from other hosts.
    protection: Arc<dyn ProtectionDb>,
    partitions: Partitions,
    /// The directories of those that are off line.
    left_alone: Vec<PathBuf>,
}

impl Stores {
    /// Opens the stores that the host's roles need. A partition that cannot be opened is off line. A server that has never had one on line
    /// does not start without one.
    pub(super) async fn open(
        remote: &RemoteDatabases<'_>,
        uuid: Uuid,
        admission: &mut Admission,
    ) -> CellResult<Self> {
        let (system, options) = (remote.system, remote.options);
        let databases = match options.roles.has(RoleName::Database) {
            true => Some(Databases::open(system, options, uuid).await?),
            false => None,
        };
        let protection = databases.as_ref().map_or_else(|| remote.protection(), |d| d.names.clone());
        let (mut online, mut offline, mut left_alone) = (Vec::new(), Vec::new(), Vec::new());
        for partition in &options.partitions {
            match open_partition(system, admission, partition).await {
                Ok(volumes) => online.push((partition.id, volumes)),
                Err(error) => {
                    tracing::error!("partition {} is off line: {error}", partition.id);
                    left_alone.push(partition.path.clone());
                    offline.push((partition.id, error));
                }
            }
        }
        if online.is_empty()
            && !admission.has_had_partitions()
            && let Some((_, error)) = offline.pop()
        {
            return Err(error);
        }
        let offline = offline.into_iter().map(|(partition, error)| (partition, error.to_string()));
        let (directory, partitions) =
            (options.directory.clone(), Partitions::new(online).with_offline(offline));
        Ok(Self { directory, databases, protection, partitions, left_alone })
    }

    /// The directories of the partitions that are off line: nothing is written there.
    pub(super) fn left_alone(&self) -> &[PathBuf] {
        &self.left_alone
    }

    /// The databases, on a host that serves them.
    pub(super) fn databases(&self) -> Option<&Databases> {
        self.databases.as_ref()
    }

    /// Users and groups.
    pub(super) fn protection(&self) -> &Arc<dyn ProtectionDb> {
        &self.protection
    }

    /// The partitions.
    pub(super) fn partitions(&self) -> &Partitions {
        &self.partitions
    }

    /// The indexes of the partitions and of the databases in the state directory.
    pub(super) fn indexes(&self) -> Vec<Kv> {
        let of_databases = self.databases.iter().filter_map(|databases| databases.index.clone());
        of_databases.chain(self.partitions.iter().map(|(_, store)| store.index().clone())).collect()
    }

    /// Guard of every service: identities from the database, requirements, audit log.
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

    /// Starts the background scrub of this host's data, if it is configured.
    pub(super) fn scrubber(&self, remote: &RemoteDatabases<'_>) -> Option<Scrubber> {
        let settings = remote.options.scrub?;
        let env = remote.system.env();
        Some(Scrubber::start(&env, &self.partitions, Some(remote.replicas()), settings))
    }

    /// Registers the server, and creates the first contents of a new cell.
    pub(super) async fn first_start(&self, remote: &RemoteDatabases<'_>, uuid: Uuid) -> CellResult {
        let options = remote.options;
        let Some(databases) = &self.databases else {
            remote.register(uuid);
            return Ok(());
        };
        let cannot = |e: &dyn Display| StartError::FirstStart(e.to_string());
        if !options.joins {
            bootstrap_protection(&*databases.protection, ADMIN_NAME).await.map_err(|e| cannot(&e))?;
        }
        let Some(first) = options.partitions.first() else { return Ok(()) };
        // A partition that is off line may have the first volumes.
        if options.joins || self.partitions.store(first.id).is_none() {
            return databases.register(uuid, options.listen).await;
        }
        let cell = CellSpec {
            cell: options.cell.clone(),
            server: uuid,
            addresses: vec![options.listen],
            partition: first.id,
            anyuser: options.anyuser,
            quota: 0,
        };
        bootstrap(&*databases.location, &self.partitions, &cell).await.map_err(|e| cannot(&e))?;
        Ok(())
    }
}

async fn open_partition(
    system: &Arc<System>,
    admission: &mut Admission,
    partition: &PartitionDirectory,
) -> CellResult<VolumeStore> {
    admission.admit(partition, || Uuid(system.random_bytes()))?;
    volumes(system, &partition.path).await
}

/// Volumes of a partition. Garbage of an earlier crash is collected in the background, after a day.
async fn volumes(system: &Arc<System>, partition: &Path) -> CellResult<VolumeStore> {
    let rows = index(system, &partition.join("index"), afs_volume::TABLES)?;
    let drive_at = partition.join("drive");
    let env = system.env();
    let drive = FileDrive::open_directory(&drive_at, env.clone()).map_err(|e| cannot_open(&drive_at, e))?;
    let bounds = afs_volume::Config::default();
    let volumes = VolumeStore::open(rows, Arc::new(drive), env.clone(), bounds).await;
    let volumes = volumes.map_err(|e| cannot_open(partition, e))?;
    env.spawn(Box::pin(volumes.clone().run_background()));
    let sweeping = volumes.clone();
    env.spawn(Box::pin(async move {
        if let Err(error) = sweeping.sweep_when_due().await {
            tracing::warn!("what an earlier crash left on the drive could not be freed: {error}");
        }
    }));
    Ok(volumes)
}
