//! Options of the servers of one host.

use crate::configuration::ports::Ports;
use afs_server::scrub::ScrubSettings;
use afs_wire::ids::{CellName, PartitionId, Rights};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How the servers of one host are to run.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// An existing directory that belongs to this process; it keeps everything but what is in `partitions`.
    pub directory: PathBuf,
    /// The cell's name. A directory that belongs to another cell is refused.
    pub cell: CellName,
    /// The address clients reach the servers at. Not 0.0.0.0: it goes into the location database.
    pub listen: Ipv4Addr,
    /// The ports.
    pub ports: Ports,
    /// What `system:anyuser` may do in the top directories of a new cell.
    pub anyuser: Rights,
    /// Whether a cell without a key for rxkad gets one.
    pub rxkad: bool,
    /// What the host does for its cell.
    pub roles: Roles,
    /// Where volumes are kept.
    pub partitions: Vec<PartitionDirectory>,
    /// Where the databases are, of a host that serves them.
    pub database: DatabaseLocation,
    /// The database servers of the cell. A host that is none itself registers with them and asks them who is who.
    pub database_servers: Vec<Ipv4Addr>,
    /// The cell's keys, in place of those in the state directory.
    pub key_file: Option<PathBuf>,
    /// How data is looked at for damage; `None` is never.
    pub scrub: Option<ScrubSettings>,
}

/// A role, as it is written.
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

/// A partition and the directory that it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionDirectory {
    /// Its number.
    pub id: PartitionId,
    /// Where its volumes are kept.
    pub path: PathBuf,
}

/// Where the databases of a cell are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DatabaseLocation {
    /// In the state directory of the one server that there is.
    Embedded,
    /// In etcd, for any number of servers.
    Etcd(EtcdOptions),
}

/// How to reach the databases in etcd.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EtcdOptions {
    /// `http://HOST:PORT` or `https://HOST:PORT` of its servers, the nearest first.
    pub endpoints: Vec<String>,
    /// What the keys of the cell begin with.
    pub prefix: String,
    /// The user to call it as, and the file with the password.
    pub user: Option<(String, PathBuf)>,
    /// Certificates of the authorities that its servers are known by, in PEM.
    pub authority: Option<PathBuf>,
    /// The certificate that this host shows, and its key.
    pub certificate: Option<PathBuf>,
    /// See `certificate`.
    pub key: Option<PathBuf>,
    /// How old what this host knows of users and groups may be while etcd does not answer.
    pub stale_max: Duration,
}

impl RoleName {
    const ALL: [Self; 2] = [Self::Database, Self::Files];

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl Roles {
    /// Everything a cell needs.
    pub const ALL: Roles = Roles(0b11);

    /// Whether a role is among them.
    #[must_use]
    pub fn has(self, role: RoleName) -> bool {
        self.0 & role.bit() != 0
    }

    /// The roles, that of the databases first.
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
    /// The partition of a server that was not told of any: `/vicepa`, in the state directory.
    #[must_use]
    pub fn first(state: &Path) -> Self {
        PartitionDirectory { id: PartitionId(0), path: state.join("vicepa") }
    }
}

impl ServerOptions {
    /// The one server of a cell, with everything in its state directory.
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
            database: DatabaseLocation::Embedded,
            database_servers: Vec::new(),
            key_file: None,
            scrub: Some(ScrubSettings::default()),
        }
    }

    /// Whom clients ask where volumes are.
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
