//! `andrew server add`: writes a join file for a new host.

use crate::error::{CommandError, CommandResult};
use crate::output;
use crate::running_cells;
use afs_cell::{CellIdentity, JoinFile, NewServer, RoleName, Roles, ServerFile};
use afs_files::secret_file;
use serde::Serialize;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

/// Options of `andrew server add`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Address of the new host
    #[arg(long, value_name = "IP")]
    listen: Ipv4Addr,
    /// Roles of the new host [default: those of this host]
    #[arg(long, value_name = "ROLE", value_delimiter = ',', value_parser = role)]
    roles: Vec<RoleName>,
    /// File to write; it contains the cell's keys
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Configuration file of this host
    #[arg(long, value_name = "FILE", conflicts_with = "state")]
    config: Option<PathBuf>,
    /// State directory of this host, if it was started without a configuration file [default: ~/.local/state/andrew]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

/// Output of `andrew server add`.
#[derive(Serialize)]
struct Added {
    cell: String,
    listen: Ipv4Addr,
    #[serde(serialize_with = "crate::output::path")]
    file: PathBuf,
}

fn role(text: &str) -> Result<RoleName, String> {
    match text {
        "database" => Ok(RoleName::Database),
        "files" => Ok(RoleName::Files),
        _ => Err("a role is database or files".to_owned()),
    }
}

impl Args {
    pub(super) fn run(self, json: bool) -> CommandResult {
        let (state, here) = self.here()?;
        if self.listen == here.listen {
            return Err(CommandError::usage(format!(
                "{} is this host; give the address of the new host",
                self.listen
            )));
        }
        if self.out.exists() {
            return Err(CommandError::usage(format!("{} exists already", self.out.display())));
        }
        let roles = if self.roles.is_empty() { &here.roles } else { &self.roles };
        let roles: Roles = roles.iter().copied().collect();
        let file = JoinFile::of(&state, &here, &NewServer { listen: self.listen, roles })?;
        let out = afs_cell::mounts::absolute(&self.out)?;
        secret_file::write(&out, file.to_text()?.as_bytes())?;
        output::show(json, &Added { cell: here.cell.to_string(), listen: self.listen, file: out });
        Ok(())
    }

    /// This host's state directory and configuration.
    fn here(&self) -> CommandResult<(PathBuf, ServerFile)> {
        if let Some(config) = &self.config {
            let file = ServerFile::read(config)?;
            return Ok((file.state_beside(config)?, file));
        }
        let state = running_cells::of_process(self.state.as_deref())?;
        let config = JoinFile::config(state.path());
        if config.exists() {
            return Ok((state.path().to_owned(), ServerFile::read(&config)?));
        }
        let unknown = || {
            CommandError::usage(format!(
                "no cell was ever served from {}; give --config or --state",
                state.path().display()
            ))
        };
        let identity = CellIdentity::read(state.path())?.ok_or_else(unknown)?;
        let last = state.last().ok_or_else(unknown)?;
        let IpAddr::V4(listen) = last.listen else { return Err(unknown()) };
        Ok((state.path().to_owned(), ServerFile::alone(identity.cell, listen, last.base_port)))
    }
}

impl fmt::Display for Added {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cell, listen, file } = self;
        let file = file.display();
        writeln!(f, "{file} makes {listen} a server of {cell}; it contains the cell's keys")?;
        writeln!(
            f,
            "copy it there over a secure channel, and start: andrew serve --join {} --detach",
            self.file.file_name().map_or_else(|| file.to_string(), |n| n.to_string_lossy().into_owned())
        )
    }
}
