//! `andrew server`: the hosts of a cell.

mod add;

use crate::error::CommandResult;
use clap::Subcommand;

/// Options of `andrew server`.
#[derive(clap::Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  andrew server add --config /etc/andrew.toml --listen 192.0.2.2 --out join.toml
                                               then, on the new host: andrew serve --join join.toml --detach"
)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Write the file that makes another host a server of the cell
    Add(add::Args),
}

impl Args {
    /// Does what the subcommand says.
    ///
    /// # Errors
    /// One line; status 2 when the input was wrong.
    pub fn run(self, json: bool) -> CommandResult {
        match self.command {
            Command::Add(args) => args.run(json),
        }
    }
}
