//! Commands of `andrew-lab`, one file for each.

mod bench;
mod bench_bulk;
mod bench_load;
mod choice;
mod costs;
mod list;
mod nasd;
mod others;
mod peer;
mod prototype;
mod report;
mod run;

use afs_lab::papers::{Paper, PaperError, papers};
use afs_lab::runs::FolderError;
use andrew::cli::Program;
use andrew::commands::{completions, man};
use andrew::error::{CommandError, CommandResult};
use clap::builder::styling::Styles;
use clap::{Parser, Subcommand};

/// Experiments with file systems: the tables and figures of papers, and benchmarks.
#[derive(Parser, Debug)]
#[command(
    name = "andrew-lab",
    version,
    styles = Styles::plain(),
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = "\
Each table and figure of three papers (Howard et al. 1988, CITI TR 01-3, Gibson et al. 1997) beside what is obtained here.
The program `andrew`, which some experiments start, is expected beside this one.

Examples:
  andrew-lab list
  andrew-lab run all --quick && andrew-lab report andrew-lab
  andrew up --detach && andrew-lab run howard88 citi01-3 --mount ~/afs"
)]
pub struct Cli {
    /// Print JSON instead of text
    #[arg(long, global = true, display_order = 900)]
    json: bool,
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
    /// Processes of the prototype of 1984, which `andrew-lab run` starts
    #[command(hide = true)]
    Prototype(prototype::Args),
    /// Write a page of all tables and figures with the results of a directory
    Report(report::Args),
    /// Measure a file system, Andrew's or any other
    Bench(bench::Args),
    /// Write the manual pages
    Man(man::Args),
    /// Write completions for a shell
    Completions(completions::Args),
}

impl Program for Cli {
    fn run(self) -> CommandResult {
        let json = self.json;
        match self.command {
            Command::List(args) => args.run(json),
            Command::Costs(args) => args.run(json),
            Command::Run(args) => args.run(json),
            Command::Nasd(args) => args.run(json),
            Command::Peer(args) => args.run(json),
            Command::Prototype(args) => args.run(json),
            Command::Report(args) => args.run(json),
            Command::Bench(args) => args.run(json),
            Command::Man(args) => args.run::<Self>(json),
            Command::Completions(args) => args.run::<Self>(),
        }
    }
}

/// The embedded papers.
fn embedded() -> CommandResult<Vec<Paper>> {
    papers().map_err(failed)
}

fn failed(error: PaperError) -> CommandError {
    CommandError::failed(error)
}

fn failed_folder(error: FolderError) -> CommandError {
    CommandError::failed(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_are_consistent() {
        Cli::definition().debug_assert();
    }
}
