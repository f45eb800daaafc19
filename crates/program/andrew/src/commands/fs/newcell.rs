//! `andrew fs newcell`: adds a cell to running mounts, or changes its database servers.

use super::taken::of_mounts_that_took;
use crate::error::{CommandError, CommandResult};
use crate::host_names;
use crate::output;
use afs_cell::cells::OtherCell;
use afs_cell::tokens::Mounts;
use serde::Serialize;
use std::fmt;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// Port of location servers of which none is given.
const LOCATION_PORT: u16 = 7003;
const FILE_PORT: u16 = 7000;

/// Options of `andrew fs newcell`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The mounts that this user started know the cell from then on until they end; `--other-cell` and
`--cellservdb` of a mount make it known from the start. Other users' mounts are not changed, not even by root.

Mounts are found by their sockets in the file system (root's in /run/andrew/mounts), not over the network: those in
other network namespaces and containers that share this directory are changed too. Mounts and commands that have
the same directory in ANDREW_RUN find one another alone.

Examples:
  andrew fs newcell example.org 192.0.2.1 192.0.2.2
  andrew fs newcell -name example.org -servers db1.example.org")]
pub struct Args {
    /// Name of the cell
    #[arg(value_name = "CELL", required_unless_present = "named")]
    cell: Option<String>,
    /// Names or addresses of its database servers: all of them, in place of those that are known
    #[arg(value_name = "SERVER", required_unless_present = "named_servers")]
    servers: Vec<String>,
    /// The name, as OpenAFS's fs takes it
    #[arg(long = "name", id = "named", value_name = "CELL", conflicts_with = "cell", hide_short_help = true)]
    named: Option<String>,
    /// The servers, as OpenAFS's fs takes them
    #[arg(long = "servers", id = "named_servers", value_name = "SERVER", num_args = 1..,
          conflicts_with = "servers", hide_short_help = true)]
    named_servers: Vec<String>,
    /// Port of its file servers [default: 7000]; that of the database servers is three higher
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..65_000))]
    fsport: Option<u16>,
    /// Port of its database servers; only three more than --fsport is possible
    #[arg(long, value_name = "PORT", hide_short_help = true)]
    vlport: Option<u16>,
}

/// What was added, and where.
#[derive(Serialize)]
struct Added {
    cell: String,
    servers: Vec<Ipv4Addr>,
    #[serde(serialize_with = "crate::output::paths")]
    mounts: Vec<PathBuf>,
}

impl Args {
    /// Adds the cell to the running mounts.
    ///
    /// # Errors
    /// A name or a server is none; no mount runs that this user may change.
    pub fn run(self, json: bool) -> CommandResult {
        let cell = self.wanted()?;
        let (taken, refused) = Mounts::running().add_cell(&cell);
        let mounts = of_mounts_that_took(taken, refused)?;
        output::show(json, &Added { cell: cell.name.to_string(), servers: cell.servers, mounts });
        Ok(())
    }

    fn wanted(&self) -> CommandResult<OtherCell> {
        let name = self.cell.as_ref().or(self.named.as_ref()).map_or("", String::as_str);
        let name = afs_wire::ids::CellName::new(name)
            .map_err(|error| CommandError::usage(format!("fs: {error}")))?;
        let base_port = self.fsport.unwrap_or(FILE_PORT);
        let location = base_port.saturating_add(LOCATION_PORT - FILE_PORT);
        if self.vlport.is_some_and(|port| port != location) {
            return Err(CommandError::usage(format!(
                "fs: the database servers of a cell whose file servers are at port {base_port} are at port {location}"
            )));
        }
        let given = if self.servers.is_empty() { &self.named_servers } else { &self.servers };
        let mut servers = Vec::new();
        for host in given {
            servers.extend(addresses_of(host)?);
        }
        Ok(OtherCell { name, servers, base_port })
    }
}

/// The IPv4 addresses of a host that a command of `fs` names.
///
/// # Errors
/// It has none.
pub(super) fn addresses_of(host: &str) -> CommandResult<Vec<Ipv4Addr>> {
    host_names::addresses(host).map_err(|error| CommandError::usage(format!("fs: {error}")))
}

impl fmt::Display for Added {
    /// As OpenAFS's, nothing.
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args as _, FromArgMatches};

    fn wanted(line: &[&str]) -> Result<String, String> {
        let command = Args::augment_args(clap::Command::new("newcell"));
        let matches =
            command.try_get_matches_from([&["newcell"], line].concat()).map_err(|e| e.to_string())?;
        let args = Args::from_arg_matches(&matches).map_err(|e| e.to_string())?;
        args.wanted().map(|cell| cell.to_string()).map_err(|error| error.message)
    }

    #[test]
    fn both_ways_of_naming_a_cell_are_taken() {
        let usual = wanted(&["example.org", "192.0.2.1", "192.0.2.2"]).unwrap();
        assert_eq!(usual, "example.org=192.0.2.1,192.0.2.2");
        let openafs =
            wanted(&["--name", "Example.org", "--servers", "192.0.2.1", "192.0.2.2", "--fsport", "7100"]);
        assert_eq!(openafs.unwrap(), "example.org=192.0.2.1,192.0.2.2:7100");
        assert!(wanted(&["example.org", "192.0.2.1", "--vlport", "7004"]).unwrap_err().contains("7003"));
        assert!(wanted(&["a/b", "192.0.2.1"]).unwrap_err().contains("cell name"));
        assert!(wanted(&["example.org"]).is_err() && wanted(&[]).is_err());
    }
}
