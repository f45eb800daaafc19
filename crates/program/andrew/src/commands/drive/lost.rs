//! `andrew drive lost`: gives a drive up that will not come back.

use super::unexpected;
use crate::error::CommandResult;
use crate::output;
use afs_cell::drives::{DriveAnswer, DriveRequest};
use serde::Serialize;
use std::fmt;

/// Options of `andrew drive lost`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Nothing waits for the drive any longer: files are read from their copies, and those without one fail at once. What has copies can
be drained from there. Files that `andrew drive drain` cannot move are named by the scrub (`andrew status`); the drive can be
removed when they are deleted or stored anew.

Examples:
  andrew drive use local && andrew drive lost big && andrew drive drain big --wait && andrew drive remove big
  andrew drive lost big --found")]
pub struct Args {
    /// Name of the drive
    #[arg(value_name = "NAME")]
    name: String,
    /// Take it back: the drive is there again, with all that was on it
    #[arg(long)]
    found: bool,
}

#[derive(Serialize)]
struct Lost {
    name: String,
    lost: bool,
}

impl Args {
    pub(super) fn run(
        self,
        ask: &impl Fn(DriveRequest) -> CommandResult<DriveAnswer>,
        json: bool,
    ) -> CommandResult {
        let Self { name, found } = self;
        let request = match found {
            true => DriveRequest::Find { name: name.clone() },
            false => DriveRequest::Lose { name: name.clone() },
        };
        match ask(request)? {
            DriveAnswer::Done => output::show(json, &Lost { name, lost: !found }),
            _ => return Err(unexpected()),
        }
        Ok(())
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lost {
            true => writeln!(
                f,
                "drive {0} is given up; `andrew drive drain {0}` moves from their copies what has some",
                self.name
            ),
            false => writeln!(f, "drive {} is used again", self.name),
        }
    }
}
