//! `andrew fs checkservers`: file servers that do not reply.

use crate::commands::duration_text::in_words;
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_cell::tokens::{CellLocation, Mounts, known_cells};
use afs_venus::{Activity, ServerActivity};
use afs_wire::ids::CellName;
use serde::Serialize;
use std::fmt;

/// Options of `andrew fs checkservers`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The mounts on this machine call the servers that did not reply last, all at once; that takes at most six
seconds. A server that no program has used since the mount was started is not known to it.

Examples:
  andrew fs checkservers
  andrew fs checkservers --fast --cell example.org")]
pub struct Args {
    /// Only servers of this cell [default: of all cells that the mounts know]
    #[arg(long, value_name = "CELL", conflicts_with = "all")]
    cell: Option<String>,
    /// Servers of all cells that the mounts know
    #[arg(long)]
    all: bool,
    /// Call no server: tell which did not reply last
    #[arg(long)]
    fast: bool,
}

/// A server that does not reply.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Silent {
    cell: String,
    addresses: Vec<String>,
    unreachable_seconds: u64,
}

#[derive(Serialize)]
struct Checked {
    /// Number of servers that the mounts know.
    servers: usize,
    unreachable: Vec<Silent>,
}

impl Args {
    /// Prints the servers that do not reply.
    ///
    /// # Errors
    /// No mount of this user's or of root's runs, or none of the cell.
    pub fn run(self, json: bool) -> CommandResult {
        let mut told = Mounts::running().activities(!self.fast);
        let is_known = self
            .cell
            .as_ref()
            .is_none_or(|cell| known_cells().iter().any(|known| is_cell(&known.cell, cell)));
        if let Some(cell) = &self.cell {
            for (home, told) in &mut told {
                told.servers.retain(|server| cell_of(home, server).eq_ignore_ascii_case(cell));
            }
        }
        if told.is_empty() || !is_known {
            let of = self.cell.map_or(String::new(), |cell| format!(" of the cell '{cell}'"));
            return Err(CommandError::failed(format!(
                "fs: no mount{of} runs here that you may ask; `andrew status` shows those there are"
            )));
        }
        output::show(json, &checked(&told));
        Ok(())
    }
}

/// What the mounts told, each server once.
fn checked(told: &[(CellLocation, Activity)]) -> Checked {
    let mut seen: Vec<(String, Vec<String>)> = Vec::new();
    let mut unreachable = Vec::new();
    for (cell, server) in told.iter().flat_map(|(cell, told)| told.servers.iter().map(move |it| (cell, it))) {
        let ServerActivity { addresses, unreachable_seconds, .. } = server;
        let mut sorted = addresses.clone();
        sorted.sort();
        let known = (cell_of(cell, server).to_owned(), sorted);
        if seen.contains(&known) {
            continue;
        }
        if let Some(seconds) = *unreachable_seconds {
            let cell = known.0.clone();
            unreachable.push(Silent { cell, addresses: addresses.clone(), unreachable_seconds: seconds });
        }
        seen.push(known);
    }
    Checked { servers: seen.len(), unreachable }
}

fn is_cell(known: &CellName, cell: &str) -> bool {
    known.as_str().eq_ignore_ascii_case(cell)
}

/// The cell of a server; a mount of an older version, which does not tell it, has one cell alone.
fn cell_of<'a>(home: &'a CellLocation, server: &'a ServerActivity) -> &'a str {
    if server.cell.is_empty() { home.cell.as_str() } else { &server.cell }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.unreachable.is_empty() {
            return writeln!(f, "All servers are running.");
        }
        writeln!(f, "These servers unavailable due to network or server problems:")?;
        self.unreachable.iter().try_for_each(|Silent { cell, addresses, unreachable_seconds }| {
            let time = in_words(*unreachable_seconds);
            writeln!(f, "  {} of cell {cell}, for {time}", addresses.join(" "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(servers: Vec<ServerActivity>) -> (CellLocation, Activity) {
        let cell = CellName::new("example.org").unwrap();
        let cell = CellLocation { cell, servers: Vec::new(), base_port: 7000, mount: None };
        (cell, Activity { servers, ..Activity::default() })
    }

    #[test]
    fn a_server_of_two_mounts_is_told_once() {
        let up = ServerActivity { addresses: vec!["192.0.2.1:7000".into()], ..ServerActivity::default() };
        let down = ServerActivity {
            addresses: vec!["192.0.2.2:7000".into()],
            unreachable_seconds: Some(30),
            ..ServerActivity::default()
        };
        let all = checked(&[told(vec![up.clone(), down.clone()]), told(vec![down])]);
        assert_eq!((all.servers, all.unreachable.len()), (2, 1));
        assert_eq!(
            all.to_string(),
            "These servers unavailable due to network or server problems:\n  192.0.2.2:7000 of cell example.org, for 30 s\n"
        );
        assert_eq!(checked(&[told(vec![up])]).to_string(), "All servers are running.\n");
    }
}
