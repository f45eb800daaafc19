//! Tables of the configuration file: partitions, and the location of the databases.

use crate::configuration::options::EtcdOptions;
use afs_etcd::Endpoint;
use afs_wire::ids::{CellName, PartitionId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

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
    /// In the state directory of the only database server.
    Embedded,
    /// In etcd.
    Etcd(EtcdTable),
}

/// Fields of `[database]` with `kind = "etcd"`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EtcdTable {
    /// URLs of its servers, the nearest first.
    pub endpoints: Vec<String>,
    /// Prefix of the keys of the cell. Default: `/andrew/CELL/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// User name at etcd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// File with the user's password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
    /// Certificates of the authorities that issued the servers' certificates, in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authority: Option<PathBuf>,
    /// Certificate of this host, in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// Key of the certificate, in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// Maximum age of cached users and groups while etcd does not reply, in seconds.
    #[serde(default = "default_stale")]
    pub stale_seconds_max: u64,
}

impl EtcdTable {
    /// Paths of its files.
    pub fn files(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        [&mut self.password_file, &mut self.authority, &mut self.certificate, &mut self.key]
            .into_iter()
            .flatten()
    }

    pub(super) fn check(&self) -> Result<(), String> {
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

    pub(super) fn options(&self, cell: &CellName) -> EtcdOptions {
        EtcdOptions {
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

fn default_stale() -> u64 {
    3600
}

/// Deserializes a value from its text form.
pub(super) fn parsed<'a, D: Deserializer<'a>, T: FromStr<Err: Display>>(from: D) -> Result<T, D::Error> {
    String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
}

/// Serializes such a value as text.
pub(super) fn shown<S: Serializer>(value: &impl Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}
