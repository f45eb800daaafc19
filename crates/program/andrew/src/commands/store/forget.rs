//! `andrew store forget`: lets the next start take or make another partition or secret than that which was there.

use crate::error::{CommandError, CommandResult};
use afs_cell::Inventory;
use afs_cell::state::StateDir;
use std::path::PathBuf;

/// Options of `andrew store forget`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
A server keeps a list of its partitions and secrets. It leaves the place of a partition alone where it finds none, or another
one, and does not start where a secret is missing: a disk may not be mounted. After this command its next start takes what is in the
place of the partition, or makes a new, empty one there, and makes a new secret.

Examples:
  andrew store forget /vicepb
  andrew store forget keys/login --state /var/lib/andrew")]
pub struct Args {
    /// A partition, such as /vicepb, or a file of the state directory, such as keys/login
    name: String,
    /// State directory of the server [default: $ANDREW_STATE, or your own]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

impl Args {
    pub(super) fn run(self) -> CommandResult {
        let state = StateDir::resolve(self.state.as_deref())?;
        if state.running()?.is_some() {
            let shown = state.path().display();
            return Err(CommandError::failed(format!(
                "store: a server runs on {shown}; stop it with `andrew down`, then try again"
            )));
        }
        let mut inventory = Inventory::read(state.path())?.unwrap_or_default();
        if !inventory.forget(&self.name) {
            let known = inventory.names().join(", ");
            let known = if known.is_empty() { "nothing".to_owned() } else { known };
            let shown = state.path().display();
            return Err(CommandError::usage(format!(
                "store: the server on {shown} has no {}; it has {known}",
                self.name
            )));
        }
        Ok(inventory.write(state.path())?)
    }
}
