//! `andrew logout`: removes tokens.

use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_cell::tokens::{Mounts, SessionId, TokenStore};
use afs_wire::ids::CellName;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// Options of `andrew logout`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Removes the token's file, and the token from all mounts. Data that is not stored yet waits for the next login if it needs the token;
`andrew fs recover` shows it.

Examples:
  andrew logout
  andrew logout --cell example.org")]
pub struct Args {
    /// The cell [default: all]
    #[arg(long, value_name = "NAME")]
    cell: Option<CellName>,
}

impl Args {
    /// Removes tokens from their files and from the mounts.
    ///
    /// # Errors
    /// There is none of that cell, or its file cannot be removed.
    pub fn run(self, json: bool) -> CommandResult {
        let store = TokenStore::current()?;
        let mounts = Mounts::running();
        let session = SessionId::current()?;
        let held = mounts.held(session).into_iter().map(|held| held.cell);
        let mut cells: BTreeSet<String> = held.filter(|cell| self.means(cell)).collect();
        mounts.forget(session, self.cell.as_ref());
        let kept = match &self.cell {
            Some(cell) => vec![cell.clone()],
            None => store.all()?.into_iter().map(|kept| kept.cell).collect(),
        };
        for cell in kept {
            if store.remove(&cell)? {
                cells.insert(cell.to_string());
            }
        }
        if let Some(cell) = self.cell.filter(|_| cells.is_empty()) {
            return Err(CommandError::usage(format!(
                "you have no token of {cell}; `andrew tokens` lists them"
            )));
        }
        output::show(json, &LoggedOut { cells });
        Ok(())
    }

    fn means(&self, cell: &str) -> bool {
        self.cell.as_ref().is_none_or(|wanted| wanted.as_str() == cell)
    }
}

/// Cells whose tokens were removed.
#[derive(Serialize)]
struct LoggedOut {
    cells: BTreeSet<String>,
}

impl fmt::Display for LoggedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells: Vec<&str> = self.cells.iter().map(String::as_str).collect();
        match cells.as_slice() {
            [] => f.write_str("there was no token to forget"),
            cells => write!(f, "logged out of {}", cells.join(", ")),
        }
    }
}
