//! `andrew fs property`: properties as the mounts tell them, for scripts.

use super::attribute;
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_cell::tokens::properties;
use rustix::io::Errno;
use serde::Serialize;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Options of `andrew fs property`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The commands of `andrew fs` are made of these properties. What is printed may have another form in a later version.

Examples:
  andrew fs property afs.counters ~/afs")]
pub struct Args {
    /// The property
    name: OsString,
    /// Files or directories
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Of a symbolic link, not of what it leads to
    #[arg(long)]
    no_follow: bool,
}

#[derive(Serialize)]
struct PathProperty {
    #[serde(serialize_with = "crate::output::path")]
    path: PathBuf,
    value: String,
}

#[derive(Serialize)]
#[serde(transparent)]
struct PathProperties(Vec<PathProperty>);

impl Args {
    /// Prints the property of each path.
    ///
    /// # Errors
    /// The first path that is not in AFS, has no such property, or of which this user may not read it.
    pub fn run(self, json: bool) -> CommandResult {
        let one = |path: PathBuf| {
            let value = value(&path, self.name.as_bytes(), self.no_follow)?;
            Ok(PathProperty { value: String::from_utf8_lossy(&value).into_owned(), path })
        };
        let all = self.paths.into_iter().map(one).collect::<CommandResult<_>>()?;
        output::show(json, &PathProperties(all));
        Ok(())
    }
}

fn value(path: &Path, name: &[u8], no_follow: bool) -> CommandResult<Vec<u8>> {
    let value = if no_follow { properties::get_of_link(path, name) } else { properties::get(path, name) };
    value.map_err(|error| match error {
        Errno::NODATA => CommandError::usage(format!(
            "fs: '{}' has no property '{}'; `afs.fid` and `afs.acl` are two that files and directories have",
            path.display(),
            String::from_utf8_lossy(name)
        )),
        other => attribute::explain(path, other),
    })
}

impl fmt::Display for PathProperties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|one| writeln!(f, "{}", one.value.trim_end_matches('\n')))
    }
}
