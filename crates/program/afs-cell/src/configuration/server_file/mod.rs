//! Configuration file of the servers of a host, in TOML, for `andrew serve --config`.

mod check;
mod tables;
#[cfg(test)]
mod tests;

pub use tables::{DatabaseTable, EtcdTable, PartitionTable};

use crate::configuration::FileError;
use crate::configuration::options::{DatabaseLocation, PartitionDirectory, RoleName, Roles, ServerOptions};
use crate::configuration::ports::Ports;
use crate::drives::DrivesTable;
use crate::error::CellResult;
use crate::servers::{DataPathTable, ScrubTable};
use afs_wire::ids::{CellName, Rights};
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::io::Read;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use tables::{parsed, shown};

/// Name of the configuration of a host that was joined to a cell, in its state directory.
pub(crate) const FILE: &str = "server.toml";

/// Contents of the file. Relative paths start at the file's directory.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ServerFile {
    /// The cell.
    #[serde(deserialize_with = "parsed", serialize_with = "shown")]
    pub cell: CellName,
    /// The address at which clients reach this host.
    pub listen: Ipv4Addr,
    /// Port of the file server; the others follow from it.
    #[serde(default = "default_base_port")]
    pub base_port: u16,
    /// The host joins a cell that others have founded: it makes no databases. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joins: bool,
    /// State directory. Default: that of the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<PathBuf>,
    /// Roles of the host. Default: all.
    #[serde(default = "default_roles")]
    pub roles: Vec<RoleName>,
    /// Rights of `system:anyuser` in the top directory of a new cell.
    #[serde(default = "default_anyuser", deserialize_with = "parsed", serialize_with = "shown")]
    pub anyuser: Rights,
    /// Create a key for rxkad if there is none.
    #[serde(default)]
    pub rxkad: bool,
    /// A KeyFileExt with the cell's keys, instead of that in the state directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// Addresses of the cell's database servers.
    #[serde(default)]
    pub database_servers: Vec<Ipv4Addr>,
    /// Location of the databases, on a host that serves them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<DatabaseTable>,
    /// Settings of the scrub.
    #[serde(default)]
    pub scrub: ScrubTable,
    /// Settings of the drives on other hosts.
    #[serde(default)]
    pub drives: DrivesTable,
    /// How the data path is offered.
    #[serde(default)]
    pub data_path: DataPathTable,
    /// Partitions. Default: `vicepa` in the state directory.
    #[serde(default, rename = "partition", skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<PartitionTable>,
}

/// Longest file that is read.
const LEN_MAX: u64 = 1 << 20;

fn default_base_port() -> u16 {
    7000
}

fn default_roles() -> Vec<RoleName> {
    vec![RoleName::Database, RoleName::Files]
}

fn default_anyuser() -> Rights {
    Rights::READ | Rights::LOOKUP
}

impl ServerFile {
    /// The configuration of the only server of a cell that was started without a file.
    #[must_use]
    pub fn alone(cell: CellName, listen: Ipv4Addr, base_port: u16) -> Self {
        ServerFile {
            cell,
            listen,
            base_port,
            joins: false,
            state: None,
            roles: default_roles(),
            anyuser: default_anyuser(),
            rxkad: false,
            key_file: None,
            database_servers: Vec::new(),
            database: None,
            scrub: ScrubTable::default(),
            drives: DrivesTable::default(),
            data_path: DataPathTable::default(),
            partitions: Vec::new(),
        }
    }

    /// The configuration of another host of the same cell, with all files at their default paths in its state
    /// directory.
    ///
    /// # Errors
    /// The other host is to serve databases that are in this host's state directory.
    pub fn of_another(&self, listen: Ipv4Addr, roles: Roles) -> CellResult<Self> {
        let shared = matches!(self.database, Some(DatabaseTable::Etcd(_)));
        if roles.has(RoleName::Database) && !shared {
            return Err(FileError::DatabasesHere.into());
        }
        let mut servers = self.database_servers.clone();
        let databases_here = self.roles().has(RoleName::Database).then_some(self.listen);
        for server in databases_here.into_iter().chain(roles.has(RoleName::Database).then_some(listen)) {
            if !servers.contains(&server) {
                servers.push(server);
            }
        }
        Ok(ServerFile {
            joins: true,
            roles: roles.iter().collect(),
            database_servers: servers,
            database: self.database.clone().filter(|_| roles.has(RoleName::Database)),
            scrub: self.scrub,
            drives: self.drives,
            data_path: self.data_path.of_another(),
            ..Self::alone(self.cell.clone(), listen, self.base_port)
        })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read or is invalid; the message names the line and what would be right.
    pub fn read(path: &Path) -> CellResult<Self> {
        let wrong =
            |why: &dyn Display| FileError::Configuration { path: path.to_owned(), why: why.to_string() };
        let mut text = String::new();
        let file = afs_own::given_file(path).map_err(|e| wrong(&e))?;
        file.take(LEN_MAX + 1).read_to_string(&mut text).map_err(|e| wrong(&e))?;
        if text.len() as u64 > LEN_MAX {
            return Err(wrong(&"too long for a configuration").into());
        }
        let mut file = Self::parse(&text).map_err(|e| wrong(&e))?;
        file.resolve(&directory_of(path)?)?;
        Ok(file)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: Self = toml::from_str(text).map_err(|e| e.to_string())?;
        file.check()?;
        Ok(file)
    }

    fn resolve(&mut self, directory: &Path) -> CellResult {
        let paths = self.partitions.iter_mut().map(|partition| &mut partition.path);
        let of_etcd = match &mut self.database {
            Some(DatabaseTable::Etcd(table)) => Some(table.files()),
            _ => None,
        };
        let of_etcd = of_etcd.into_iter().flatten();
        for path in paths.chain(&mut self.state).chain(&mut self.key_file).chain(of_etcd) {
            *path = directory.join(&*path);
        }
        Ok(())
    }

    /// The state directory: the one it names; else the file's own directory, if that belongs to a server; else the
    /// default one.
    ///
    /// # Errors
    /// There is no home directory for the default.
    pub fn state_beside(&self, path: &Path) -> CellResult<PathBuf> {
        let directory = directory_of(path)?;
        match &self.state {
            Some(state) => Ok(state.clone()),
            None if directory.join("keys").is_dir() => Ok(directory),
            None => Ok(crate::state::StateDir::resolve(None)?.path().to_owned()),
        }
    }

    fn roles(&self) -> Roles {
        self.roles.iter().copied().collect()
    }

    /// Options of the servers, with their state in `state`.
    #[must_use]
    pub fn options(&self, state: &Path) -> ServerOptions {
        let places = self.partitions.iter();
        let mut partitions: Vec<_> =
            places.map(|table| PartitionDirectory { id: table.name, path: table.path.clone() }).collect();
        if partitions.is_empty() && self.roles().has(RoleName::Files) {
            partitions.push(PartitionDirectory::first(state));
        }
        let database = match &self.database {
            Some(DatabaseTable::Embedded) | None => DatabaseLocation::Embedded,
            Some(DatabaseTable::Etcd(table)) => DatabaseLocation::Etcd(table.options(&self.cell)),
        };
        ServerOptions {
            joins: self.joins,
            anyuser: self.anyuser,
            rxkad: self.rxkad,
            roles: self.roles(),
            partitions,
            database,
            database_servers: self.database_servers.clone(),
            key_file: self.key_file.clone(),
            scrub: self.scrub.settings(),
            key_age: self.drives.key_age(),
            data_path: self.data_path.options(Ports::at(self.listen, self.base_port)),
            ..ServerOptions::alone(state, self.cell.clone(), self.listen, Ports::from(self.base_port))
        }
    }
}

/// The directory of a file that may be named by its name alone.
fn directory_of(file: &Path) -> CellResult<PathBuf> {
    let file = crate::mounts::absolute(file)?;
    Ok(file.parent().map_or_else(|| file.clone(), Path::to_owned))
}

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn fuzz(text: &str) -> bool {
    let Ok(mut file) = ServerFile::parse(text) else { return false };
    let again = toml::to_string(&file).map_err(|e| e.to_string()).and_then(|text| ServerFile::parse(&text));
    assert_eq!(again.as_ref(), Ok(&file), "what was read can be written");
    if file.resolve(Path::new("/etc")).is_ok() {
        let _ = file.options(Path::new("/state"));
    }
    true
}
