//! `andrew man`: the manual pages, from the same definitions as the parser.

use crate::cli::Cli;
use crate::error::{CommandError, CommandResult};
use clap::CommandFactory;
use std::fs;
use std::path::PathBuf;

/// Options of `andrew man`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew man --out ~/.local/share/man/man1 && man andrew-up")]
pub struct Args {
    /// Directory to write to; made if it is not there
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

impl Args {
    /// Writes one page a command: `andrew.1`, `andrew-up.1`, `andrew-fs-listacl.1` and so on.
    ///
    /// # Errors
    /// The directory cannot be made or written to.
    pub fn run(self) -> CommandResult {
        let failed = |e: std::io::Error| {
            CommandError::failed(format!("cannot write manual pages to {}: {e}", self.out.display()))
        };
        fs::create_dir_all(&self.out).map_err(failed)?;
        clap_mangen::generate_to(Cli::command().disable_help_subcommand(true), &self.out).map_err(failed)
    }
}
