//! `andrew drive add`: joins a drive on another host.

use super::unexpected;
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_cell::drives::{DriveAnswer, DriveRequest};
use afs_files::secret_file;
use serde::Serialize;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;

/// Options of `andrew drive add`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The join key proves both ends to each other: it has the fingerprint of the drive's key and a secret, and is void afterwards.
If the command was interrupted, run it again.

Examples:
  andrew drive add big --address 192.0.2.9:7010 --join-key /root/join-key")]
pub struct Args {
    /// Name of the drive on this host
    #[arg(value_name = "NAME")]
    name: String,
    /// Where the drive listens
    #[arg(long, value_name = "IP:PORT")]
    address: SocketAddr,
    /// The join key that `andrew drive serve` printed, or a file with it that only you can read
    #[arg(long, value_name = "KEY|FILE")]
    join_key: String,
}

#[derive(Serialize)]
struct Added {
    name: String,
    address: SocketAddr,
}

impl Args {
    pub(super) fn run(
        self,
        ask: &impl Fn(DriveRequest) -> CommandResult<DriveAnswer>,
        json: bool,
    ) -> CommandResult {
        let Self { name, address, join_key } = self;
        let join_key = text(&join_key)?;
        match ask(DriveRequest::Add { name: name.clone(), address, join_key })? {
            DriveAnswer::Done => output::show(json, &Added { name, address }),
            _ => return Err(unexpected()),
        }
        Ok(())
    }
}

/// The key itself, or the contents of its file.
fn text(key: &str) -> CommandResult<String> {
    if afs_cell::drives::JoinKey::parse(key).is_ok() {
        return Ok(key.to_owned());
    }
    let none = || CommandError::usage(format!("drive: {key:?} is neither a join key nor a file with one"));
    let bytes = secret_file::read(Path::new(key)).map_err(afs_cell::CellError::from)?.ok_or_else(none)?;
    String::from_utf8(bytes.to_vec()).map_err(|_| none())
}

impl fmt::Display for Added {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "drive {} at {} belongs to this file server; its join key is void",
            self.name, self.address
        )?;
        writeln!(f, "new data go there after: andrew drive use {}", self.name)
    }
}
