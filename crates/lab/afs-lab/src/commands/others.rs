//! Other file systems to compare with, by names: `--beside NAME=DIR` and `--beside-server NAME=PID`.

use crate::commands::bench_bulk::places;
use afs_cell::mounts;
use afs_lab::bulk::{Place, Process};
use afs_lab::measure::{Mounted, NetProbe, OtherMount};
use afs_lab::runs::Environment;
use andrew::error::{CommandError, CommandResult};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Longest name, in letters.
const NAME_MAX: usize = 16;
/// Names that columns have already, and that of the compiler among the programs of a result.
const TAKEN: [&str; 8] = ["andrew", "bytes", "calls", "cc", "local", "phase", "standalone", "what"];
/// Names that say in what file system a directory is, with the types of that.
const KINDS: [(&str, &[&str]); 2] = [("nfs", &["nfs", "nfs4"]), ("kafs", &["afs"])];

/// An argument `NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named<T> {
    name: String,
    value: T,
}

impl<T: FromStr> FromStr for Named<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or("no '=' behind the name, as in nfs=/mnt/nfs")?;
        let is_name = name.len() <= NAME_MAX
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        if !is_name {
            return Err(format!("'{name}' is no name of at most {NAME_MAX} small letters and digits"));
        }
        if TAKEN.contains(&name) {
            return Err(format!("the name '{name}' has a meaning already"));
        }
        let value = value.parse().map_err(|_| format!("'{value}' is no number"))?;
        Ok(Self { name: name.to_owned(), value })
    }
}

/// A file system to compare with.
struct Other {
    name: String,
    /// Its type and source.
    what: String,
    place: Place,
}

/// All of them, in the order of the command line.
pub(super) struct Others(Vec<Other>);

impl Others {
    /// The directories, with the processes of their servers.
    ///
    /// # Errors
    /// One is no directory, or in another file system than its name says; a name is given twice, or is that of a server
    /// alone; a process does not run.
    pub(super) fn of(
        directories: &[Named<PathBuf>],
        servers: &[Named<u32>],
        process: &dyn Fn(u32) -> CommandResult<Process>,
    ) -> CommandResult<Self> {
        once(directories, "--beside")?;
        once(servers, "--beside-server")?;
        let is_known = |server: &&Named<u32>| directories.iter().any(|one| one.name == server.name);
        if let Some(server) = servers.iter().find(|server| !is_known(server)) {
            return Err(usage(format!("--beside-server {0}: there is no --beside {0}=DIR", server.name)));
        }
        let of = |Named { name, value }: &Named<PathBuf>| {
            let mut place = places::writer(value, &[])?;
            let server = servers.iter().find(|server| server.name == *name);
            place.processes.extend(server.map(|server| process(server.value)).transpose()?);
            Ok(Other { name: name.clone(), what: what(name, value)?, place })
        };
        directories.iter().map(of).collect::<CommandResult<_>>().map(Self)
    }

    /// Counters of each.
    pub(super) fn probes(&self) -> Vec<NetProbe<'_>> {
        self.0.iter().map(|other| NetProbe(&other.place)).collect()
    }

    /// Each with its counters.
    pub(super) fn mounted<'a>(&'a self, probes: &'a [NetProbe<'a>]) -> Vec<OtherMount<'a>> {
        let all = self.0.iter().zip(probes);
        let mounted = |(Other { name, place, .. }, probe): (&'a Other, &'a NetProbe<'a>)| OtherMount {
            name,
            mounted: Mounted { place, probe: Some(probe) },
        };
        all.map(mounted).collect()
    }

    /// What a result was obtained on, with types and sources of these file systems.
    pub(super) fn added_to(&self, mut environment: Environment) -> Environment {
        environment.peers.extend(self.0.iter().map(|other| (other.name.clone(), other.what.clone())));
        environment
    }
}

/// Type and source of the file system of a directory.
///
/// # Errors
/// Its name says another type.
fn what(name: &str, directory: &Path) -> CommandResult<String> {
    let real = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let (kind, source) = mounts::file_system(&real)?.unwrap_or_default();
    let wanted = KINDS.iter().find(|known| known.0 == name).map(|known| known.1);
    if wanted.is_some_and(|wanted| !wanted.contains(&kind.as_str())) {
        let shown = directory.display();
        return Err(usage(format!("--beside {name}: {shown} is in a mount of type {kind}, not {name}")));
    }
    Ok(format!("{kind}, {source}"))
}

/// # Errors
/// A name is there twice.
fn once<T>(all: &[Named<T>], option: &str) -> CommandResult {
    let is_again = |at: usize| all[..at].iter().any(|one| one.name == all[at].name);
    match (0..all.len()).find(|at| is_again(*at)) {
        Some(at) => Err(usage(format!("{option} {}: the name is given twice", all[at].name))),
        None => Ok(()),
    }
}

fn usage(message: String) -> CommandError {
    CommandError::usage(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_that_no_column_has() {
        let parse = |text: &str| text.parse::<Named<u32>>();
        assert_eq!(parse("nfs=7"), Ok(Named { name: "nfs".into(), value: 7 }));
        for wrong in
            ["nfs", "=7", "NFS=7", "a_min=7", "7a=7", "seventeenletters0=7", "andrew=7", "cc=7", "nfs=x"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
