//! `andrew fs whereis`: servers of the volumes that hold paths.

use super::attribute;
use super::paths::Paths;
use crate::error::CommandResult;
use crate::output;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Options of `andrew fs whereis`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew fs whereis ~/afs")]
pub struct Args {
    #[command(flatten)]
    paths: Paths,
}

#[derive(Serialize)]
struct FileServers {
    #[serde(serialize_with = "crate::output::path")]
    path: PathBuf,
    hosts: Vec<String>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct FileServersList(Vec<FileServers>);

impl Args {
    /// Prints all sites of the volumes that hold the paths.
    ///
    /// # Errors
    /// The first path that is not in AFS.
    pub fn run(self, json: bool) -> CommandResult {
        let one = |path: PathBuf| {
            let hosts = attribute::get_text(&path, "afs.whereis")?;
            Ok(FileServers { path, hosts: hosts.split_whitespace().map(str::to_owned).collect() })
        };
        let places = self.paths.all().into_iter().map(one).collect::<CommandResult<_>>()?;
        output::show(json, &FileServersList(places));
        Ok(())
    }
}

impl fmt::Display for FileServersList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for FileServers { path, hosts } in &self.0 {
            let noun = if hosts.len() == 1 { "host" } else { "hosts" };
            writeln!(f, "File {} is on {noun} {}", path.display(), hosts.join(" "))?;
        }
        Ok(())
    }
}
