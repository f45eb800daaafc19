//! Options of the data path, of all commands that mount.

use afs_cell::{DataPathUse, KeptDataPath, StoreOptions};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// How a mount uses the data path of the servers.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct DataPathOptions {
    /// Move large ranges of files over TCP from servers that offer it: on (with TLS), server (with TLS, and never
    /// at the drives that a file server names), off, or clear (also without TLS where the server permits it, for trusted networks)
    /// [default: on]
    #[arg(long, value_name = "on|server|off|clear", value_parser = used)]
    data_path: Option<DataPathUse>,
    /// Ranges smaller than this are moved by calls [default: 64K, or what the server says if that is more]
    #[arg(long, value_name = "SIZE", value_parser = crate::size::parse)]
    data_path_min: Option<u64>,
    /// Where the data path of a server is reached, instead of where the server says
    #[arg(long, value_name = "SERVER=IP:PORT", value_delimiter = ',', value_parser = address)]
    data_path_address: Vec<(IpAddr, SocketAddr)>,
    /// An object store that a file server may send this mount to although it has no TLS, or is on this machine. Others are read
    /// over TLS alone
    #[arg(long, value_name = "http[s]://HOST[:PORT]", value_delimiter = ',', value_parser = endpoint)]
    data_path_store: Vec<String>,
    /// Certificates (PEM) of the authorities that certificates of object stores are verified by [default: those of the system]
    #[arg(long, value_name = "FILE")]
    data_path_store_authority: Option<PathBuf>,
}

impl DataPathOptions {
    /// What was given.
    pub fn given(&self) -> KeptDataPath {
        let (addresses, stores) = (&self.data_path_address, &self.data_path_store);
        KeptDataPath {
            used: self.data_path,
            minimum_size: self.data_path_min,
            addresses: (!addresses.is_empty()).then(|| addresses.iter().copied().collect()),
            stores: (!stores.is_empty()).then(|| stores.iter().cloned().collect()),
            store_authority: self.data_path_store_authority.clone(),
        }
    }
}

fn used(text: &str) -> Result<DataPathUse, String> {
    match text {
        "on" => Ok(DataPathUse::On),
        "server" => Ok(DataPathUse::Server),
        "off" => Ok(DataPathUse::Off),
        "clear" => Ok(DataPathUse::Clear),
        _ => Err("one of on, server, off and clear".to_owned()),
    }
}

fn endpoint(text: &str) -> Result<String, String> {
    StoreOptions::endpoint(text).map_err(|error| error.to_string())
}

fn address(text: &str) -> Result<(IpAddr, SocketAddr), String> {
    let parsed = text.split_once('=').and_then(|(server, at)| Some((server.parse().ok()?, at.parse().ok()?)));
    parsed.ok_or_else(|| format!("'{text}' is not like 192.0.2.1=198.51.100.7:7100"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_words_and_pairs_of_addresses() {
        assert_eq!(used("off"), Ok(DataPathUse::Off));
        assert_eq!(used("server"), Ok(DataPathUse::Server));
        assert!(used("no").is_err());
        let pair = ("192.0.2.1".parse().unwrap(), "198.51.100.7:7100".parse().unwrap());
        assert_eq!(address("192.0.2.1=198.51.100.7:7100"), Ok(pair));
        for text in ["", "192.0.2.1", "192.0.2.1=198.51.100.7", "a=198.51.100.7:7100"] {
            assert!(address(text).is_err(), "{text:?}");
        }
        let options = DataPathOptions { data_path_address: vec![pair], ..DataPathOptions::default() };
        assert_eq!(options.given().config().addresses.get(&pair.0), Some(&pair.1));
    }
}
