//! `andrew pts listmax`: the largest user and group ids.

use super::route::{Target, refused};
use crate::error::CommandResult;
use crate::output;
use afs_wire::pt::ListMax;
use serde::Serialize;
use std::fmt;

/// Options of `andrew pts listmax`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew pts listmax")]
pub struct Args {}

#[derive(Serialize)]
struct MaxIds {
    user: i32,
    group: i32,
}

impl Args {
    /// Prints the counters.
    ///
    /// # Errors
    /// The server's refusal.
    pub fn run(self, target: &mut Target, json: bool) -> CommandResult {
        let max = target.call(&ListMax {}).map_err(|f| refused(f, "unable to get the largest ids"))?;
        output::show(json, &MaxIds { user: max.user.0, group: max.group.0 });
        Ok(())
    }
}

impl fmt::Display for MaxIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Max user id is {} and max group id is {}.", self.user, self.group)
    }
}
