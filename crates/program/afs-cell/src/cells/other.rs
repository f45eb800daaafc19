//! A cell as an option names it: `NAME=IP[,IP...]`.

use afs_venus::CellConfig;
use afs_wire::ids::CellName;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// Port of location servers, and of file servers.
pub(super) const LOCATION_PORT: u16 = 7003;
pub(super) const FILE_PORT: u16 = 7000;
/// Offset of the location service from the base port.
const LOCATION_OFFSET: u16 = LOCATION_PORT - FILE_PORT;

/// A cell with its location servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OtherCell {
    /// The cell.
    pub name: CellName,
    /// Its location servers, at least one.
    pub servers: Vec<Ipv4Addr>,
    /// Port of its file servers; that of the location servers is three higher.
    pub base_port: u16,
}

impl OtherCell {
    /// As the cache manager takes it. `is_listed`: a listing of all cells shows it before it was entered.
    #[must_use]
    pub fn config(&self, is_listed: bool) -> CellConfig {
        let port = self.base_port.saturating_add(LOCATION_OFFSET);
        CellConfig {
            name: self.name.clone(),
            location_servers: self.servers.iter().map(|server| SocketAddr::from((*server, port))).collect(),
            file_port: self.base_port,
            is_listed,
        }
    }
}

impl FromStr for OtherCell {
    type Err = String;

    /// `NAME=IP[,IP...]`, or `NAME=IP[,IP...]:PORT` with the port of its file servers.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, servers) = text.split_once('=').ok_or("a cell is given as NAME=IP,IP")?;
        let name = CellName::new(name).map_err(|error| error.to_string())?;
        let (servers, port) = match servers.split_once(':') {
            Some((servers, port)) => (servers, Some(port)),
            None => (servers, None),
        };
        let base_port = match port.map(str::parse::<u16>) {
            None => FILE_PORT,
            Some(Ok(port @ 1..)) if port <= u16::MAX - LOCATION_OFFSET => port,
            Some(_) => return Err(format!("{:?} is not a port of file servers", port.unwrap_or_default())),
        };
        let address = |text: &str| text.parse().map_err(|_| format!("{text:?} is not an IPv4 address"));
        let servers = servers.split(',').map(address).collect::<Result<_, _>>()?;
        Ok(Self { name, servers, base_port })
    }
}

impl fmt::Display for OtherCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers: Vec<String> = self.servers.iter().map(ToString::to_string).collect();
        write!(f, "{}={}", self.name, servers.join(","))?;
        if self.base_port == FILE_PORT { Ok(()) } else { write!(f, ":{}", self.base_port) }
    }
}

impl TryFrom<String> for OtherCell {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<OtherCell> for String {
    fn from(cell: OtherCell) -> Self {
        cell.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_given_by_its_name_and_servers() {
        for text in ["example.org=192.0.2.1", "example.org=192.0.2.1,192.0.2.2", "example.org=192.0.2.1:7100"]
        {
            assert_eq!(text.parse::<OtherCell>().unwrap().to_string(), text);
        }
        let config = "Example.org=192.0.2.1:7100".parse::<OtherCell>().unwrap().config(true);
        assert_eq!(config.name.as_str(), "example.org");
        assert_eq!((config.location_servers, config.file_port), (vec![([192, 0, 2, 1], 7103).into()], 7100));
        for text in [
            "example.org",
            "=192.0.2.1",
            "a/b=192.0.2.1",
            "a.b=",
            "a.b=host",
            "a.b=192.0.2.1:0",
            "a.b=192.0.2.1:65534",
        ] {
            assert!(text.parse::<OtherCell>().is_err(), "{text}");
        }
    }
}
