//! Options of a mount's data path, as `options.toml` keeps them in the table `data_path`.

use crate::mount::StoreOptions;
use afs_venus::DataPathConfig;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Value of `--data-path`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataPathUse {
    /// With TLS, where a server has a data path.
    On,
    /// The same, but only at file servers: not at the drives that they name.
    Server,
    /// Not at all.
    Off,
    /// Also without TLS, where a server permits it.
    Clear,
}

/// What was given; `None` is the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptDataPath {
    /// `--data-path`.
    #[serde(rename = "use", skip_serializing_if = "Option::is_none")]
    pub used: Option<DataPathUse>,
    /// `--data-path-min`, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_size: Option<u64>,
    /// `--data-path-address`: the drive's address by the file server's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addresses: Option<BTreeMap<IpAddr, SocketAddr>>,
    /// `--data-path-store`: endpoints of object stores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stores: Option<BTreeSet<String>>,
    /// `--data-path-store-authority`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store_authority: Option<PathBuf>,
}

impl KeptDataPath {
    /// Whether nothing was given.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// These options, and those of `before` where nothing is given.
    #[must_use]
    pub fn or(self, before: Self) -> Self {
        Self {
            used: self.used.or(before.used),
            minimum_size: self.minimum_size.or(before.minimum_size),
            addresses: self.addresses.or(before.addresses),
            stores: self.stores.or(before.stores),
            store_authority: self.store_authority.or(before.store_authority),
        }
    }

    /// Which object stores are read.
    #[must_use]
    pub fn stores(&self) -> StoreOptions {
        StoreOptions {
            allowed: self.stores.clone().unwrap_or_default(),
            authority: self.store_authority.clone(),
        }
    }

    /// What they mean to the cache manager.
    #[must_use]
    pub fn config(&self) -> DataPathConfig {
        let used = self.used.unwrap_or(DataPathUse::On);
        DataPathConfig {
            enabled: used != DataPathUse::Off,
            drives: used != DataPathUse::Server,
            minimum_size: self.minimum_size,
            addresses: self.addresses.clone().unwrap_or_default(),
            allow_clear: used == DataPathUse::Clear,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::KeptOptions;

    #[test]
    fn a_table_is_written_and_read_and_what_is_not_given_is_as_before() {
        let address = ("192.0.2.1".parse().unwrap(), "198.51.100.7:7100".parse().unwrap());
        let before = KeptDataPath {
            used: Some(DataPathUse::Clear),
            minimum_size: None,
            addresses: Some(BTreeMap::from([address])),
            stores: Some(BTreeSet::from(["http://127.0.0.1:9000".into()])),
            store_authority: Some("/etc/ca.pem".into()),
        };
        let given = KeptDataPath { minimum_size: Some(1 << 20), ..KeptDataPath::default() };
        let data_path = given.or(before);
        let options = KeptOptions { base_port: Some(7200), data_path, ..KeptOptions::default() };
        let text = toml::to_string(&options).unwrap();
        assert_eq!(toml::from_str::<KeptOptions>(&text).unwrap(), options, "{text}");
        let config = options.data_path.config();
        assert!(config.enabled && config.allow_clear && config.minimum_size == Some(1 << 20));
        assert_eq!(config.addresses, BTreeMap::from([address]));
        let stores = options.data_path.stores();
        assert_eq!((stores.allowed.len(), stores.authority), (1, Some("/etc/ca.pem".into())));
    }

    #[test]
    fn without_options_the_path_is_used_with_tls_and_nothing_is_written() {
        assert_eq!(KeptDataPath::default().config(), DataPathConfig::default());
        assert!(!toml::to_string(&KeptOptions::default()).unwrap().contains("data_path"));
        let off = KeptDataPath { used: Some(DataPathUse::Off), ..KeptDataPath::default() };
        assert!(!off.config().enabled);
        let server = KeptDataPath { used: Some(DataPathUse::Server), ..KeptDataPath::default() };
        assert!(server.config().enabled && !server.config().drives && !server.config().allow_clear);
    }
}
