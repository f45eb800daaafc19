//! The configuration file of a host's servers: what `andrew serve --config` reads.

use crate::cell::options::{DatabasePlace, EtcdPlace, PartitionPlace, Roles, ServerOptions};
use crate::cell::ports::{BASE_PORT_MAX, BASE_PORT_MIN, Ports};
use crate::error::{CommandError, CommandResult};
use afs_etcd::Endpoint;
use afs_wire::ids::{CellName, PartitionId, Rights};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// Name of the configuration of a host that was joined to a cell, in its state directory.
pub(super) const FILE: &str = "server.toml";

/// What the file says. Paths that are not absolute begin at the file's directory.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ServerFile {
    /// The cell.
    #[serde(deserialize_with = "parsed", serialize_with = "shown")]
    pub cell: CellName,
    /// The address clients reach this host at.
    pub listen: Ipv4Addr,
    /// Port of the file server; the others follow from it.
    #[serde(default = "default_base_port")]
    pub base_port: u16,
    /// Directory that keeps what is not in a partition. Default: as of the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<PathBuf>,
    /// What the host does. Default: everything.
    #[serde(default = "default_roles")]
    pub roles: Vec<RoleName>,
    /// What everybody may do in the top directory of a new cell.
    #[serde(default = "default_anyuser", deserialize_with = "parsed", serialize_with = "shown")]
    pub anyuser: Rights,
    /// Make a key for rxkad if there is none.
    #[serde(default)]
    pub rxkad: bool,
    /// A KeyFileExt with the cell's keys, in place of the one in the state directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// Addresses of the cell's database servers.
    #[serde(default)]
    pub database_servers: Vec<Ipv4Addr>,
    /// Where the databases are, on a host that serves them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<DatabaseTable>,
    /// Where volumes are kept. Default: `vicepa` in the state directory.
    #[serde(default, rename = "partition", skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<PartitionTable>,
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

/// `[[partition]]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionTable {
    /// A letter, `vicepa` or `/vicepa`.
    #[serde(deserialize_with = "parsed", serialize_with = "shown")]
    pub name: PartitionId,
    /// Its directory.
    pub path: PathBuf,
}

/// `[database]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "lowercase")]
pub enum DatabaseTable {
    /// The state directory of the one database server.
    Embedded,
    /// etcd.
    Etcd(EtcdTable),
}

/// What goes with `kind = "etcd"`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EtcdTable {
    /// Where its servers are, the nearest first.
    pub endpoints: Vec<String>,
    /// What the keys of the cell begin with. Default: `/andrew/CELL/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The user to call it as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// File with the user's password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
    /// Certificates of the authorities that its servers are known by, in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authority: Option<PathBuf>,
    /// The certificate that this host shows, in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// Its key, in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// How many seconds old what this host knows of users and groups may be while etcd does not answer.
    #[serde(default = "default_stale")]
    pub stale_seconds_max: u64,
}

impl EtcdTable {
    /// Its files.
    pub fn files(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        [&mut self.password_file, &mut self.authority, &mut self.certificate, &mut self.key]
            .into_iter()
            .flatten()
    }

    fn check(&self) -> Result<(), String> {
        for endpoint in &self.endpoints {
            endpoint.parse::<Endpoint>().map_err(|e| format!("endpoints: {e}"))?;
        }
        if self.endpoints.is_empty() {
            return Err("endpoints: name etcd's servers, as in [\"http://192.0.2.1:2379\"]".into());
        }
        if self.user.is_some() != self.password_file.is_some() {
            return Err("user and password_file go together".into());
        }
        if self.certificate.is_some() != self.key.is_some() {
            return Err("certificate and key go together".into());
        }
        if self.authority.is_none() && self.endpoints.iter().any(|endpoint| endpoint.starts_with("https:")) {
            return Err(
                "authority: an endpoint is https; name the file with its certificate authority".into()
            );
        }
        Ok(())
    }

    fn place(&self, cell: &CellName) -> EtcdPlace {
        EtcdPlace {
            endpoints: self.endpoints.clone(),
            prefix: self.prefix.clone().unwrap_or_else(|| format!("/andrew/{cell}/")),
            user: self.user.clone().zip(self.password_file.clone()),
            authority: self.authority.clone(),
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            stale_max: Duration::from_secs(self.stale_seconds_max),
        }
    }
}

/// Longest file that is read.
const LEN_MAX: u64 = 1 << 20;

fn default_base_port() -> u16 {
    7000
}

fn default_roles() -> Vec<RoleName> {
    vec![RoleName::Database, RoleName::Files]
}

fn default_stale() -> u64 {
    3600
}

fn default_anyuser() -> Rights {
    Rights::READ | Rights::LOOKUP
}

fn parsed<'a, D: Deserializer<'a>, T: FromStr<Err: Display>>(from: D) -> Result<T, D::Error> {
    String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
}

fn shown<S: Serializer>(value: &impl Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

impl ServerFile {
    /// What it would say of the one server of a cell that was started without a file.
    #[must_use]
    pub fn alone(cell: CellName, listen: Ipv4Addr, base_port: u16) -> Self {
        ServerFile {
            cell,
            listen,
            base_port,
            state: None,
            roles: default_roles(),
            anyuser: default_anyuser(),
            rxkad: false,
            key_file: None,
            database_servers: Vec::new(),
            database: None,
            partitions: Vec::new(),
        }
    }

    /// The file of another host of the same cell, with everything at its usual place in its state directory.
    ///
    /// # Errors
    /// It is to serve databases that are in this host's state directory.
    pub fn of_another(&self, listen: Ipv4Addr, roles: Roles) -> CommandResult<Self> {
        let shared = matches!(self.database, Some(DatabaseTable::Etcd(_)));
        if roles.database && !shared {
            return Err(CommandError::usage(
                "the databases of this cell are on this host alone; put them into etcd first (docs/servers.md), or add a host with --roles files",
            ));
        }
        let mut servers = self.database_servers.clone();
        let databases_here = self.roles().database.then_some(self.listen);
        for server in databases_here.into_iter().chain(roles.database.then_some(listen)) {
            if !servers.contains(&server) {
                servers.push(server);
            }
        }
        let names = [(roles.database, RoleName::Database), (roles.files, RoleName::Files)];
        Ok(ServerFile {
            roles: names.into_iter().filter(|(plays, _)| *plays).map(|(_, name)| name).collect(),
            database_servers: servers,
            database: self.database.clone().filter(|_| roles.database),
            ..Self::alone(self.cell.clone(), listen, self.base_port)
        })
    }

    /// What a file says.
    ///
    /// # Errors
    /// It cannot be read, or says something that means nothing; the message names line and what would be right.
    pub fn read(path: &Path) -> CommandResult<Self> {
        let wrong = |why: &dyn Display| CommandError::usage(format!("{}: {why}", path.display()));
        let length = fs::metadata(path).map_err(|e| wrong(&e))?.len();
        if length > LEN_MAX {
            return Err(wrong(&"too long for a configuration"));
        }
        let text = fs::read_to_string(path).map_err(|e| wrong(&e))?;
        let mut file = Self::parse(&text).map_err(|e| wrong(&e))?;
        file.resolve(path.parent().unwrap_or(Path::new(".")))?;
        Ok(file)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: Self = toml::from_str(text).map_err(|e| e.to_string())?;
        file.check()?;
        Ok(file)
    }

    fn check(&self) -> Result<(), String> {
        let roles = self.roles();
        if !(roles.database || roles.files) {
            return Err("roles: say \"database\", \"files\", or both".into());
        }
        if !(BASE_PORT_MIN..=BASE_PORT_MAX).contains(&self.base_port) {
            return Err(format!("base_port is {BASE_PORT_MIN} to {BASE_PORT_MAX}"));
        }
        if self.listen.is_unspecified() || self.listen.is_multicast() || self.listen.is_broadcast() {
            return Err(format!(
                "listen: clients cannot reach {}; give one address of this host",
                self.listen
            ));
        }
        if !roles.database && self.database_servers.is_empty() {
            return Err(
                "database_servers: name those of the cell, or give this host the role \"database\"".into()
            );
        }
        if !roles.database && self.database.is_some() {
            return Err(
                "[database] is for hosts with the role \"database\"; remove it, or add the role".into()
            );
        }
        if let Some(DatabaseTable::Etcd(table)) = &self.database {
            table.check()?;
        }
        if !roles.files && !self.partitions.is_empty() {
            return Err(
                "[[partition]] is for hosts with the role \"files\"; remove it, or add the role".into()
            );
        }
        let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
        for partition in &self.partitions {
            if !names.insert(partition.name) || !paths.insert(&partition.path) {
                return Err(format!("[[partition]]: {} is there twice", partition.name));
            }
        }
        Ok(())
    }

    fn resolve(&mut self, directory: &Path) -> CommandResult {
        let directory = crate::mounts::absolute(directory)?;
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

    /// Its state directory: the one it names, or the one it is in when that is of a server, or the usual one.
    ///
    /// # Errors
    /// There is no home directory for the default.
    pub fn state_beside(&self, path: &Path) -> CommandResult<PathBuf> {
        let directory = crate::mounts::absolute(path.parent().unwrap_or(Path::new(".")))?;
        match &self.state {
            Some(state) => Ok(state.clone()),
            None if directory.join("keys").is_dir() => Ok(directory),
            None => Ok(crate::state::StateDir::resolve(None)?.path().to_owned()),
        }
    }

    fn roles(&self) -> Roles {
        Roles {
            database: self.roles.contains(&RoleName::Database),
            files: self.roles.contains(&RoleName::Files),
        }
    }

    /// How the servers are to run, with their state in `state`.
    #[must_use]
    pub fn options(&self, state: &Path) -> ServerOptions {
        let places = self.partitions.iter();
        let mut partitions: Vec<_> =
            places.map(|table| PartitionPlace { id: table.name, path: table.path.clone() }).collect();
        if partitions.is_empty() && self.roles().files {
            partitions.push(PartitionPlace::first(state));
        }
        let database = match &self.database {
            Some(DatabaseTable::Embedded) | None => DatabasePlace::Embedded,
            Some(DatabaseTable::Etcd(table)) => DatabasePlace::Etcd(table.place(&self.cell)),
        };
        ServerOptions {
            anyuser: self.anyuser,
            rxkad: self.rxkad,
            roles: self.roles(),
            partitions,
            database,
            database_servers: self.database_servers.clone(),
            key_file: self.key_file.clone(),
            ..ServerOptions::alone(state, self.cell.clone(), self.listen, Ports::from(self.base_port))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "cell = \"example.org\"\nlisten = \"192.0.2.1\"\n";

    #[test]
    fn what_is_not_said_is_the_default() {
        let file = ServerFile::parse(LEAST).unwrap();
        let options = file.options(Path::new("/srv"));
        assert_eq!((options.roles, options.ports.file()), (Roles::ALL, 7000));
        assert_eq!(options.partitions, [PartitionPlace::first(Path::new("/srv"))]);
        assert_eq!(options.anyuser, Rights(9));
    }

    #[test]
    fn paths_begin_at_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("server.toml");
        let text = format!(
            "{LEAST}state = \"state\"\n[[partition]]\nname = \"/vicepb\"\npath = \"b\"\n[[partition]]\nname = \"c\"\npath = \"/c\"\n"
        );
        fs::write(&path, text).unwrap();
        let file = ServerFile::read(&path).unwrap();
        assert_eq!(file.state.as_deref(), Some(dir.path().join("state").as_path()));
        let places: Vec<_> = file.partitions.iter().map(|p| (p.name.0, p.path.clone())).collect();
        assert_eq!(places, [(1, dir.path().join("b")), (2, PathBuf::from("/c"))]);
    }

    #[test]
    fn what_means_nothing_is_an_error_that_names_the_place() {
        for (text, words) in [
            ("lisen = \"192.0.2.1\"\n", &["line 3", "lisen", "listen"][..]),
            ("roles = [\"file\"]\n", &["line 3", "file", "files"]),
            ("roles = []\n", &["database", "files"]),
            ("roles = [\"files\"]\n", &["database_servers"]),
            ("base_port = 80\n", &["base_port", "1024"]),
            ("anyuser = \"xyz\"\n", &["line 3"]),
            ("[[partition]]\nname = \"vicepzz9\"\npath = \"/a\"\n", &["line 4"]),
            (
                "[[partition]]\nname = \"a\"\npath = \"/a\"\n[[partition]]\nname = \"a\"\npath = \"/b\"\n",
                &["twice"],
            ),
            ("[database]\nkind = \"oracle\"\n", &["line 4", "embedded"]),
            ("[database]\nkind = \"etcd\"\nendpoints = []\n", &["endpoints"]),
            ("[database]\nkind = \"etcd\"\nendpoints = [\"a:1\"]\n", &["endpoints", "http://HOST:PORT"]),
            ("[database]\nkind = \"etcd\"\nendpoints = [\"https://a:1\"]\n", &["authority"]),
            ("[database]\nkind = \"etcd\"\nendpoints = [\"http://a:1\"]\nuser = \"a\"\n", &["password_file"]),
            ("[database]\nkind = \"etcd\"\nendpoints = [\"http://a:1\"]\nusr = \"a\"\n", &["usr", "user"]),
        ] {
            let why = ServerFile::parse(&format!("{LEAST}{text}")).unwrap_err();
            assert!(words.iter().all(|word| why.contains(word)), "{why}");
        }
    }
}
