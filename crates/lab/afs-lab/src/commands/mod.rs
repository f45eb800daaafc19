//! Commands of `andrew-lab`, one file for each.

mod bench;
mod bench_bulk;
mod bench_load;
mod choice;
mod costs;
mod nasd;
mod others;
mod peer;
mod progress;
mod prototype;
mod run;

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
Tables and figures of Howard et al. 1988 and CITI TR 01-3 are measured here; `scripts/lab-report` puts them beside the papers'
numbers, with those of Gibson et al. 1997, which it computes.
The program `andrew`, which some experiments start, is expected beside this one.

Examples:
  andrew-lab run all --quick && scripts/lab-report andrew-lab
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
    /// Measure what calls cost a server's processor, for --costs of scripts/lab-report
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
            Command::Costs(args) => args.run(json),
            Command::Run(args) => args.run(json),
            Command::Nasd(args) => args.run(json),
            Command::Peer(args) => args.run(json),
            Command::Prototype(args) => args.run(json),
            Command::Bench(args) => args.run(json),
            Command::Man(args) => args.run::<Self>(json),
            Command::Completions(args) => args.run::<Self>(),
        }
    }
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
