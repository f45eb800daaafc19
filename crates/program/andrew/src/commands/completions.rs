//! `andrew completions`: shell completions, from the same definitions as the parser.

use crate::cli::Program;
use crate::error::CommandResult;
use clap_complete::Shell;
use std::io::{self, Write};

/// Options of `andrew completions`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  andrew completions bash > ~/.local/share/bash-completion/completions/andrew\n  andrew completions zsh > ~/.zfunc/_andrew"
)]
pub struct Args {
    /// Shell to write completions for
    shell: Shell,
}

impl Args {
    /// Writes the completions to standard output.
    ///
    /// # Errors
    /// None: a closed pipe is not an error.
    pub fn run<P: Program>(self) -> CommandResult {
        let mut script = Vec::new();
        let mut root = P::definition();
        let name = root.get_name().to_owned();
        clap_complete::generate(self.shell, &mut root, name, &mut script);
        let _ = io::stdout().write_all(&script);
        Ok(())
    }
}
