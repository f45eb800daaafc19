//! Options of the cells that a mount knows, as `options.toml` keeps them in the table `cells`.

use crate::cells::{CellFile, DnsServers, OtherCell, OtherCells};
use crate::error::CellResult;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// The port of DNS.
const PORT: u16 = 53;
const OFF: &str = "off";
const ON: &str = "on";

/// Value of `--dns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DnsUse {
    /// The servers of the machine's configuration are asked.
    On,
    /// Cells are not looked up.
    Off,
    /// This server is asked.
    At(SocketAddr),
}

impl FromStr for DnsUse {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let with_port = |ip: IpAddr| SocketAddr::new(ip, PORT);
        match text {
            ON => Ok(Self::On),
            OFF => Ok(Self::Off),
            _ => {
                let at = text.parse().or_else(|_| text.parse().map(with_port));
                at.map(Self::At)
                    .map_err(|_| format!("{text:?} is neither on, off nor the address of a server of DNS"))
            }
        }
    }
}

impl fmt::Display for DnsUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::On => f.write_str(ON),
            Self::Off => f.write_str(OFF),
            Self::At(server) => server.fmt(f),
        }
    }
}

impl TryFrom<String> for DnsUse {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<DnsUse> for String {
    fn from(used: DnsUse) -> Self {
        used.to_string()
    }
}

/// What was given; `None` is the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptCells {
    /// `--dynroot`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynroot: Option<bool>,
    /// `--other-cell`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<Vec<OtherCell>>,
    /// `--cellservdb`: a file, or "off".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// `--dns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns: Option<DnsUse>,
}

impl KeptCells {
    /// Whether nothing was given.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// These options, and those of `before` where nothing is given.
    #[must_use]
    pub fn or(self, before: Self) -> Self {
        Self {
            dynroot: self.dynroot.or(before.dynroot),
            others: self.others.or(before.others),
            file: self.file.or(before.file),
            dns: self.dns.or(before.dns),
        }
    }

    /// The cells that they name. DNS is asked with the directory of all cells, and otherwise only if the option says so.
    ///
    /// # Errors
    /// A file cannot be read, or one that was named has a bad line.
    pub fn gather(&self) -> CellResult<OtherCells> {
        let shows_all = self.dynroot == Some(true);
        let dns = match self.dns {
            Some(DnsUse::On) => Some(DnsServers::of_machine()?),
            Some(DnsUse::At(server)) => Some(DnsServers::one(server)),
            None if shows_all => DnsServers::of_machine().inspect_err(|error| tracing::warn!("{error}")).ok(),
            Some(DnsUse::Off) | None => None,
        };
        let file = match &self.file {
            None => CellFile::Usual,
            Some(path) if path.as_os_str() == OFF => CellFile::Off,
            Some(path) => CellFile::At(path.clone()),
        };
        OtherCells::gather(shows_all, self.others.clone().unwrap_or_default(), &file, dns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::KeptOptions;
    use afs_wire::ids::CellName;

    #[test]
    fn a_table_is_written_and_read_and_what_is_not_given_is_as_before() {
        let before = KeptCells {
            dynroot: Some(true),
            others: Some(vec!["example.org=192.0.2.1,192.0.2.2:7100".parse().unwrap()]),
            file: Some("off".into()),
            dns: Some(DnsUse::On),
        };
        let given = KeptCells { dns: Some("192.0.2.9:5300".parse().unwrap()), ..KeptCells::default() };
        let options = KeptOptions { cells: given.or(before), ..KeptOptions::default() };
        let text = toml::to_string(&options).unwrap();
        assert_eq!(toml::from_str::<KeptOptions>(&text).unwrap(), options, "{text}");
        let cells = options.cells.gather().unwrap();
        assert!(cells.shows_all && cells.listed.is_empty());
        assert_eq!(cells.dns, Some(DnsServers::one("192.0.2.9:5300".parse().unwrap())));
        assert!(!toml::to_string(&KeptOptions::default()).unwrap().contains("cells"));
        for bad in ["", "yes", "example.org", "192.0.2.1:99999"] {
            assert!(bad.parse::<DnsUse>().is_err(), "{bad}");
        }
        assert_eq!("2001:db8::1".parse(), Ok(DnsUse::At("[2001:db8::1]:53".parse().unwrap())));
    }

    #[test]
    fn a_file_that_was_named_must_be_sound_and_an_option_counts_before_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cells");
        let kept = KeptCells {
            others: Some(vec!["b.example=192.0.2.9".parse().unwrap()]),
            file: Some(path.clone()),
            ..KeptCells::default()
        };
        let error = kept.gather().unwrap_err().to_string();
        assert!(error.contains("cells") && error.contains("--cellservdb"), "{error}");
        std::fs::write(&path, ">a.example #A\n192.0.2.1\n>b.example\n192.0.2.2\n>home.example\n192.0.2.3\n")
            .unwrap();
        let cells = kept.gather().unwrap();
        assert!(cells.dns.is_none() && !cells.shows_all);
        let configs = cells.configs(&CellName::new("home.example").unwrap());
        let shown: Vec<String> = configs
            .iter()
            .map(|cell| format!("{} {} {}", cell.name, cell.location_servers[0], cell.is_listed))
            .collect();
        assert_eq!(shown, ["b.example 192.0.2.9:7003 true", "a.example 192.0.2.1:7003 false"]);
        std::fs::write(&path, ">a.example #A\nhost.example\n").unwrap();
        let error = kept.gather().unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
    }
}
