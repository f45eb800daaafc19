//! `andrew fs sysname`: what `@sys` in names stands for.

use super::of_mounts::{OfMounts, of_mounts};
use crate::error::CommandResult;
use crate::output;
use serde::Serialize;
use std::fmt;

/// Options of `andrew fs sysname`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew fs sysname")]
pub struct Args {}

#[derive(Serialize)]
struct Sysnames {
    sysnames: Vec<String>,
}

impl Args {
    /// Prints the values of `@sys` of each mount.
    ///
    /// # Errors
    /// No mount of this user's or of root's runs.
    pub fn run(self, json: bool) -> CommandResult {
        let all: OfMounts<Sysnames> = of_mounts(|told| Sysnames { sysnames: told.sysnames.clone() })?;
        output::show(json, &all);
        Ok(())
    }
}

impl fmt::Display for Sysnames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted: Vec<String> = self.sysnames.iter().map(|name| format!("'{name}'")).collect();
        let list = if quoted.len() == 1 { "" } else { " list" };
        writeln!(f, "Current sysname{list} is {}", quoted.join(" "))
    }
}
