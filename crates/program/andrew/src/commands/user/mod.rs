//! `andrew user`: people of a cell, with their homes.

mod add;

use crate::error::CommandResult;
use clap::Subcommand;

/// `andrew user`.
#[derive(clap::Args, Debug)]
#[command(arg_required_else_help = true, after_help = "Examples:\n  andrew user add alice ~/afs/alice")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Add a user with a private home
    Add(add::Args),
}

impl Args {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// Those of the subcommand.
    pub fn run(self, json: bool) -> CommandResult {
        match self.command {
            Command::Add(args) => args.run(json),
        }
    }
}
