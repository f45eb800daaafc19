//! `andrew man`: the manual pages, from the same definitions as the parser.

use crate::cli::Program;
use crate::error::{CommandError, CommandResult};
use crate::output;
use clap::Command;
use serde::Serialize;
use std::fmt;
use std::fs;
use std::path::PathBuf;

/// Options of `andrew man`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew man --out ~/.local/share/man/man1 && man andrew-up")]
pub struct Args {
    /// Directory to write to; created if it does not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

impl Args {
    /// Writes one page for each command of a program: `andrew.1`, `andrew-up.1`, `andrew-fs-listacl.1` and so on.
    ///
    /// # Errors
    /// The directory cannot be created or written to.
    pub fn run<P: Program>(self, json: bool) -> CommandResult {
        let failed = |e: std::io::Error| {
            CommandError::failed(format!("cannot write manual pages to {}: {e}", self.out.display()))
        };
        fs::create_dir_all(&self.out).map_err(failed)?;
        let mut root = P::definition().disable_help_subcommand(true);
        root.build();
        let root = with_usage(root);
        let count = pages(&root);
        clap_mangen::generate_to(root, &self.out).map_err(failed)?;
        output::show(json, &ManualPages { directory: self.out, pages: count });
        Ok(())
    }
}

/// Directory and number of the pages.
#[derive(Serialize)]
struct ManualPages {
    #[serde(serialize_with = "output::path")]
    directory: PathBuf,
    pages: usize,
}

impl fmt::Display for ManualPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} manual pages are in {}", self.pages, self.directory.display())
    }
}

/// Number of pages of a command: one, and those of its subcommands.
fn pages(command: &Command) -> usize {
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    1 + shown.map(pages).sum::<usize>()
}

/// The command with the usage line of `--help` as its synopsis: optional options are `[OPTIONS]`, required ones are
/// shown with their values.
fn with_usage(mut command: Command) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    for name in names {
        command = command.mut_subcommand(name, with_usage);
    }
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim().to_owned();
    command.override_usage(usage)
}
