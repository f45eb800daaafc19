//! `andrew fs pins`: what is pinned on the mounts of this machine, and how much of it is missing.

use crate::commands::duration_text::in_words;
use crate::error::CommandResult;
use crate::{output, size};
use afs_cell::tokens::{MountLocation, Mounts};
use afs_venus::{PinState, Pinned, Unpromised};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Options of `andrew fs pins`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
States: complete (all of it is in the cache, and current), fetching, waiting (for a server), partial (the rest is not
fetched, for the reason that is shown). Root sees the pins of all users.

Examples:
  andrew fs pins
  andrew fs pins --json | jq '.[] | select(.state != \"complete\")'")]
pub struct Args {}

#[derive(Serialize)]
struct Listed {
    /// The mount point.
    #[serde(serialize_with = "crate::output::path")]
    directory: PathBuf,
    #[serde(flatten)]
    pin: Pinned,
}

#[derive(Serialize)]
#[serde(transparent)]
struct List(Vec<Listed>);

impl Args {
    /// Prints the pins.
    ///
    /// # Errors
    /// None; mounts that do not reply are left out.
    pub fn run(self, json: bool) -> CommandResult {
        let listed = |(mount, pin): (MountLocation, Pinned)| Listed { directory: mount.directory, pin };
        output::show(json, &List(Mounts::running().pins().into_iter().map(listed).collect()));
        Ok(())
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(f, "nothing is pinned");
        }
        self.0.iter().try_for_each(|listed| listed.fmt(f))
    }
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Listed { directory, pin } = self;
        let below = if pin.is_recursive { ", with all below" } else { "" };
        let offline = if pin.is_offline { ", for reading without its server" } else { "" };
        writeln!(f, "{}{below}{offline}", directory.join(&pin.path).display())?;
        let all = format!("{} objects, {}", pin.objects, size::show(pin.bytes));
        match pin.state {
            PinState::Complete => write!(f, "  {}: {all}", pin.state)?,
            _ => {
                let (count, bytes) = (pin.missing_objects, size::show(pin.missing_bytes));
                write!(f, "  {}: {all}; missing: {count}, {bytes}", pin.state)?;
            }
        }
        pin.uid.iter().try_for_each(|uid| write!(f, "; by user {uid}"))?;
        writeln!(f)?;
        if let Some(Unpromised { since_seconds_ago, as_of_seconds_ago }) = pin.unpromised {
            let (since, as_of) = (in_words(since_seconds_ago), in_words(as_of_seconds_ago));
            writeln!(f, "  read without promise since {since} ago, as it was {as_of} ago")?;
        }
        pin.reason.iter().try_for_each(|why| writeln!(f, "  {why}"))
    }
}
