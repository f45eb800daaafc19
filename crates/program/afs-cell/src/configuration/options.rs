//! Options of the servers of one host.

use crate::configuration::ports::Ports;
use crate::drives::DrivesTable;
use crate::servers::DataPathTable;
use afs_server::DataPathOptions;
use afs_server::scrub::ScrubSettings;
use afs_wire::ids::{CellName, PartitionId, Rights};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options of the servers of one host.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// An existing directory that belongs to this process; it keeps all state except that in `partitions`.
    pub directory: PathBuf,
    /// The cell's name. A directory that belongs to another cell is refused.
    pub cell: CellName,
    /// The address at which clients reach the servers. Not 0.0.0.0: it is entered into the location database.
    pub listen: Ipv4Addr,
    /// The ports.
    pub ports: Ports,
    /// Rights of `system:anyuser` in the top directories of a new cell.
    pub anyuser: Rights,
    /// Whether a cell without a key for rxkad gets one.
    pub rxkad: bool,
    /// Roles of the host in its cell.
    pub roles: Roles,
    /// Partitions of the host.
    pub partitions: Vec<PartitionDirectory>,
    /// Whether the host joins a cell that others have founded: without databases of that cell it does not start.
    pub joins: bool,
    /// Location of the databases, for a host that serves them.
    pub database: DatabaseLocation,
    /// Database servers of the cell. A host that is none itself registers with them and looks up identities there.
    pub database_servers: Vec<Ipv4Addr>,
    /// File with the cell's keys, instead of that in the state directory.
    pub key_file: Option<PathBuf>,
    /// Age at which drives on other hosts are given other keys; `None`: at the owner's request alone.
    pub key_age: Option<Duration>,
    /// Settings of the scrub; `None`: no scrub.
    pub scrub: Option<ScrubSettings>,
    /// How the data path is offered; `None` is not at all.
    pub data_path: Option<DataPathOptions>,
}

/// A role, as it is written in a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RoleName {
    /// Location, protection and login service.
    Database,
    /// File and volume service.
    Files,
}

/// Set of the roles of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Roles(u8);

/// A partition and its directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionDirectory {
    /// Its number.
    pub id: PartitionId,
    /// Directory of its volumes.
    pub path: PathBuf,
}

/// Location of the databases of a cell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DatabaseLocation {
    /// The state directory of the only database server.
    Embedded,
    /// etcd, for any number of database servers.
    Etcd(EtcdOptions),
}

/// Options of the connection to etcd.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EtcdOptions {
    /// URLs of its servers, `http://HOST:PORT` or `https://HOST:PORT`, the nearest first.
    pub endpoints: Vec<String>,
    /// Prefix of the keys of the cell.
    pub prefix: String,
    /// User name at etcd, and the file with the password.
    pub user: Option<(String, PathBuf)>,
    /// Certificates of the authorities that issued the servers' certificates, in PEM.
    pub authority: Option<PathBuf>,
    /// Certificate of this host, and its key.
    pub certificate: Option<PathBuf>,
    /// See `certificate`.
    pub key: Option<PathBuf>,
    /// Maximum age of cached users and groups while etcd does not reply.
    pub stale_max: Duration,
}

impl RoleName {
    const ALL: [Self; 2] = [Self::Database, Self::Files];

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl Roles {
    /// All roles of a cell.
    pub const ALL: Roles = Roles(0b11);

    /// Whether a role is in the set.
    #[must_use]
    pub fn has(self, role: RoleName) -> bool {
        self.0 & role.bit() != 0
    }

    /// The roles, databases first.
    pub fn iter(self) -> impl Iterator<Item = RoleName> {
        RoleName::ALL.into_iter().filter(move |role| self.has(*role))
    }
}

impl FromIterator<RoleName> for Roles {
    fn from_iter<I: IntoIterator<Item = RoleName>>(roles: I) -> Self {
        Self(roles.into_iter().fold(0, |bits, role| bits | role.bit()))
    }
}

impl PartitionDirectory {
    /// The only partition of a server that was given none: `/vicepa`, in the state directory.
    #[must_use]
    pub fn first(state: &Path) -> Self {
        PartitionDirectory { id: PartitionId(0), path: state.join("vicepa") }
    }
}

impl ServerOptions {
    /// Options of the only server of a cell, with all its state in one directory.
    #[must_use]
    pub fn alone(directory: &Path, cell: CellName, listen: Ipv4Addr, ports: Ports) -> Self {
        ServerOptions {
            directory: directory.to_owned(),
            cell,
            listen,
            ports,
            anyuser: Rights::default(),
            rxkad: false,
            roles: Roles::ALL,
            partitions: vec![PartitionDirectory::first(directory)],
            joins: false,
            database: DatabaseLocation::Embedded,
            database_servers: Vec::new(),
            key_file: None,
            key_age: DrivesTable::default().key_age(),
            scrub: Some(ScrubSettings::default()),
            data_path: DataPathTable::default().options(Ports::at(listen, ports.file())),
        }
    }

    /// Addresses of the location servers.
    #[must_use]
    pub fn location_servers(&self) -> Vec<Ipv4Addr> {
        if self.database_servers.is_empty() { vec![self.listen] } else { self.database_servers.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_roles_are_each_of_them() {
        assert_eq!(RoleName::ALL.into_iter().collect::<Roles>(), Roles::ALL);
        let files: Roles = [RoleName::Files, RoleName::Files].into_iter().collect();
        assert!(files.has(RoleName::Files) && !files.has(RoleName::Database));
        assert_eq!(files.iter().collect::<Vec<_>>(), [RoleName::Files]);
    }
}
