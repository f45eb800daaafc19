//! `andrew lab`: the tables and figures of the papers, beside what is measured here.

mod choice;
mod costs;
mod list;
mod nasd;
mod others;
mod peer;
mod prototype;
mod report;
mod run;

use crate::error::{CommandError, CommandResult};
use afs_lab::papers::{Paper, PaperError, papers};
use afs_lab::runs::FolderError;
use clap::Subcommand;

/// `andrew lab`.
#[derive(clap::Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Each table and figure of three papers (Howard et al. 1988, CITI TR 01-3, Gibson et al. 1997) beside what is obtained here.

Examples:
  andrew lab list
  andrew lab run all --quick && andrew lab report andrew-lab
  andrew up --detach && andrew lab run howard88 citi01-3 --mount ~/afs"
)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// List the tables and figures, and whether each can be repeated here
    List(list::Args),
    /// Measure what calls cost a server's processor, for --costs of the runs
    Costs(costs::Args),
    /// Repeat experiments, and keep their results in a directory
    Run(run::Args),
    /// Put the same load on the four organisations of disks, in a mount of a running cell
    Nasd(nasd::Args),
    /// Be the other end of a link, for streams by the layers of the network
    Peer(peer::Args),
    /// Processes of the prototype of 1984, which `andrew lab run` starts
    #[command(hide = true)]
    Prototype(prototype::Args),
    /// Write a page of all tables and figures with the results of a directory
    Report(report::Args),
}

impl Args {
    /// Runs the selected command.
    ///
    /// # Errors
    /// Invalid options, status 2; a failure while it runs, status 1.
    pub fn run(self, json: bool) -> CommandResult {
        match self.command {
            Command::List(args) => args.run(json),
            Command::Costs(args) => args.run(json),
            Command::Run(args) => args.run(json),
            Command::Nasd(args) => args.run(json),
            Command::Peer(args) => args.run(json),
            Command::Prototype(args) => args.run(json),
            Command::Report(args) => args.run(json),
        }
    }
}

/// The embedded papers.
fn embedded() -> CommandResult<Vec<Paper>> {
    papers().map_err(failed)
}

fn failed(error: PaperError) -> CommandError {
    CommandError::failed(format!("lab: {error}"))
}

fn failed_folder(error: FolderError) -> CommandError {
    CommandError::failed(format!("lab: {error}"))
}
