//! `andrew store`: the stores of a cell that does not run, checked and repaired.

mod check;
mod drives;
mod forget;
mod repair;
mod text;

use crate::error::CommandResult;
use clap::Subcommand;

/// Options of `andrew store`.
#[derive(clap::Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "\
A server keeps the names, rights and small files of each partition, and the databases of the cell, in stores: an index
and a log. Where a store has lost something its partition is off line, or its server does not start, and says which file it is. If there is a good copy of that
file, put it back; otherwise check says what is lost, and repair keeps the rest.

Examples:
  andrew store check ~/.local/state/andrew    all stores of a cell
  andrew store check /vicepb                  one partition
  andrew store check /srv/drive               a drive that is not served
  andrew store repair /vicepb"
)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Read everything of the stores in a directory, or of a drive, and say what is damaged and lost
    Check(check::Args),
    /// Make new stores of what is left of damaged ones, which are set aside
    Repair(repair::Args),
    /// Let the next start take or make another partition or secret
    Forget(forget::Args),
}

impl Args {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// One line; status 2 if the input was invalid.
    pub fn run(self, json: bool) -> CommandResult {
        match self.command {
            Command::Check(args) => args.run(json),
            Command::Repair(args) => args.run(json),
            Command::Forget(args) => args.run(),
        }
    }
}
