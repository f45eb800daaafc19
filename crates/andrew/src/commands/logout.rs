//! `andrew logout`.

use crate::error::{CommandError, CommandResult};
use crate::tokens::{Mounts, SessionId, TokenStore};
use afs_wire::ids::CellName;

/// Options of `andrew logout`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The token's file is removed and the mounts forget it. What was not stored yet for want of rights is lost.

Examples:
  andrew logout
  andrew logout --cell example.org")]
pub struct Args {
    /// The cell [default: all]
    #[arg(long, value_name = "NAME")]
    cell: Option<CellName>,
}

impl Args {
    /// Forgets tokens, here and in the mounts.
    ///
    /// # Errors
    /// There is none of that cell, or its file cannot be removed.
    pub fn run(self, _json: bool) -> CommandResult {
        let store = TokenStore::current()?;
        let mounts = Mounts::running();
        let session = SessionId::current()?;
        let Some(cell) = self.cell else {
            mounts.forget(session, None);
            return store.all()?.iter().try_for_each(|kept| store.remove(&kept.cell).map(drop));
        };
        let held = mounts.held(session).iter().any(|held| held.cell == cell.as_str());
        mounts.forget(session, Some(&cell));
        if !store.remove(&cell)? && !held {
            return Err(CommandError::usage(format!(
                "you have no token of {cell}; `andrew tokens` lists them"
            )));
        }
        Ok(())
    }
}
