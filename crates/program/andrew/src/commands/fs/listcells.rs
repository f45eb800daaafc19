//! `andrew fs listcells`: the cells that the mounts here know, and their database servers.

use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_cell::tokens::{CellLocation, known_cells};
use serde::Serialize;
use std::fmt;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// Options of `andrew fs listcells`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
A mount knows its own cell, those that its options and files name (--other-cell, --cellservdb), those that
`andrew fs newcell` added, and those that were found in DNS. Servers are shown by their addresses.

Examples:
  andrew fs listcells")]
pub struct Args {
    /// Accepted for scripts made for OpenAFS: addresses are always shown
    #[arg(long, hide_short_help = true)]
    numeric: bool,
}

#[derive(Serialize)]
struct KnownCell {
    cell: String,
    servers: Vec<Ipv4Addr>,
    /// Where it is mounted.
    directory: Option<PathBuf>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct KnownCells(Vec<KnownCell>);

impl Args {
    /// Prints the cells of the running mounts that this user may ask.
    ///
    /// # Errors
    /// There is none.
    pub fn run(self, json: bool) -> CommandResult {
        let known: Vec<KnownCell> = known_cells().into_iter().map(KnownCell::from).collect();
        if known.is_empty() {
            return Err(CommandError::failed(
                "fs: no mount runs here that you may ask; `andrew up` or `andrew mount` makes one",
            ));
        }
        output::show(json, &KnownCells(known));
        Ok(())
    }
}

impl From<CellLocation> for KnownCell {
    fn from(known: CellLocation) -> Self {
        let directory = known.mount.map(|mount| mount.directory);
        Self { cell: known.cell.to_string(), servers: known.servers, directory }
    }
}

impl fmt::Display for KnownCells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown: Vec<(&str, &[Ipv4Addr])> = Vec::new();
        for KnownCell { cell, servers, .. } in &self.0 {
            if shown.contains(&(cell, servers)) {
                continue;
            }
            shown.push((cell, servers));
            let hosts: Vec<String> = servers.iter().map(Ipv4Addr::to_string).collect();
            writeln!(f, "Cell {cell} on hosts {}.", hosts.join(" "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_that_is_mounted_twice_is_one() {
        let known = |directory: &str| KnownCell {
            cell: "example.org".into(),
            servers: vec![[192, 0, 2, 1].into(), [192, 0, 2, 2].into()],
            directory: Some(directory.into()),
        };
        let text = KnownCells(vec![known("/a"), known("/b")]).to_string();
        assert_eq!(text, "Cell example.org on hosts 192.0.2.1 192.0.2.2.\n");
    }
}
