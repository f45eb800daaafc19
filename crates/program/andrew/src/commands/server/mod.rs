//! `andrew server`: the hosts of a cell.

mod add;
mod empty;
mod list;
mod probe;
mod remove;

use crate::commands::vos::ops::Ops;
use crate::commands::vos::route_options::RouteOptions;
use crate::error::{CommandError, CommandResult};
use clap::Subcommand;

/// Options of `andrew server`.
#[derive(clap::Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  andrew server add --config /etc/andrew.toml --listen 192.0.2.2 --out join.toml
                                               then, on the new host: andrew serve --join join.toml --detach
  andrew server list
  andrew server empty 192.0.2.2 && andrew server remove 192.0.2.2"
)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Write a join file, which makes another host a server of the cell
    Add(add::Args),
    /// Show the servers of the cell, their services and their free space
    List(OnCell<list::Args>),
    /// Move all volumes of a server to others
    Empty(OnCell<empty::Args>),
    /// Remove a server without volumes from the location database
    Remove(OnCell<remove::Args>),
}

/// A command, and the cell that it refers to.
#[derive(clap::Args, Debug)]
struct OnCell<C: clap::Args> {
    #[command(flatten)]
    route: RouteOptions,
    #[command(flatten)]
    command: C,
}

impl Args {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// One line; status 2 if the input was invalid.
    pub fn run(self, json: bool) -> CommandResult {
        let open = |route: &RouteOptions| Ops::open(route, json);
        let done = match self.command {
            Command::Add(args) => args.run(json),
            Command::List(OnCell { route, command }) => open(&route).and_then(|ops| command.run(&ops, json)),
            Command::Empty(OnCell { route, command }) => open(&route).and_then(|ops| command.run(&ops, json)),
            Command::Remove(OnCell { route, command }) => {
                open(&route).and_then(|ops| command.run(&ops, json))
            }
        };
        done.map_err(of_this_command)
    }
}

/// Replaces the prefix `vos:` of an error by that of this command.
fn of_this_command(error: CommandError) -> CommandError {
    let message = match error.message.strip_prefix("vos: ") {
        Some(rest) => format!("server: {rest}"),
        None => error.message,
    };
    CommandError { message, ..error }
}
