//! Settings of the data path, and what a running server says of it.

use afs_datapath::MINIMUM_SIZE;
use afs_server::DataPathOptions;
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

/// `[data_path]` of the configuration file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct DataPathTable {
    /// Whether the file server offers it.
    pub enable: bool,
    /// Where it listens, by TCP. Default: the address of the host, the port of the file server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddrV4>,
    /// The address that clients are told, in place of the one at which they reach the file server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Ipv4Addr>,
    /// Whether clients may come without TLS.
    pub clear: bool,
    /// Bytes below which clients are told to use calls.
    pub minimum_size: u64,
}

impl Default for DataPathTable {
    fn default() -> Self {
        DataPathTable { enable: true, listen: None, address: None, clear: false, minimum_size: MINIMUM_SIZE }
    }
}

impl DataPathTable {
    /// What makes no sense of it.
    pub(crate) fn check(&self) -> Result<(), String> {
        let cannot_be_reached =
            |address: &Ipv4Addr| address.is_unspecified() || address.is_multicast() || address.is_broadcast();
        match self.address.filter(cannot_be_reached) {
            Some(address) => Err(format!("data_path: clients cannot reach {address}; give one address")),
            None => Ok(()),
        }
    }

    /// The settings of a host whose file server is at `file`; `None` is off.
    pub(crate) fn options(&self, file: SocketAddr) -> Option<DataPathOptions> {
        self.enable.then(|| DataPathOptions {
            listen: self.listen.map_or(file, SocketAddr::V4),
            addresses: self.address.into_iter().collect(),
            clear: self.clear,
            minimum_size: self.minimum_size,
        })
    }

    /// The same for another host.
    pub(crate) fn of_another(&self) -> Self {
        DataPathTable { listen: None, address: None, ..self.clone() }
    }
}

/// Whether a process serves the data path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DataPathState {
    /// It is switched off, or the host has no file server.
    #[default]
    Off,
    /// It listens here.
    At(SocketAddr),
    /// It could not be opened; the reason, for a person. Clients use calls.
    Failed(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_settings_follow_those_of_the_file_server() {
        let file = SocketAddr::from(([192, 0, 2, 1], 7100));
        let options = DataPathTable::default().options(file).unwrap();
        assert_eq!((options.listen, options.addresses.len(), options.clear), (file, 0, false));
        assert_eq!(DataPathTable { enable: false, ..DataPathTable::default() }.options(file), None);
        let elsewhere = DataPathTable {
            listen: Some("192.0.2.2:7001".parse().unwrap()),
            address: Some(Ipv4Addr::new(198, 51, 100, 1)),
            ..DataPathTable::default()
        };
        let options = elsewhere.options(file).unwrap();
        assert_eq!(options.listen, SocketAddr::from(([192, 0, 2, 2], 7001)));
        assert_eq!(options.addresses, [Ipv4Addr::new(198, 51, 100, 1)]);
        assert_eq!(elsewhere.of_another(), DataPathTable::default());
    }
}
