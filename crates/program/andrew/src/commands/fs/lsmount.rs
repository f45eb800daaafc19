//! `andrew fs lsmount`: volumes of mount points.

use super::attribute::{self, explain};
use super::paths::parent_and_name;
use crate::error::{CommandError, CommandResult};
use crate::output;
use rustix::io::Errno;
use serde::Serialize;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Options of `andrew fs lsmount`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew fs lsmount ~/afs/projects")]
pub struct Args {
    /// Mount points
    #[arg(value_name = "DIR", required_unless_present = "named")]
    bare: Vec<PathBuf>,
    /// The same, as OpenAFS's fs takes them
    #[arg(long = "dir", value_name = "DIR", num_args = 1.., hide_short_help = true)]
    named: Vec<PathBuf>,
}

#[derive(Serialize)]
struct MountPoint {
    #[serde(serialize_with = "crate::output::path")]
    path: PathBuf,
    volume: String,
}

#[derive(Serialize)]
#[serde(transparent)]
struct MountPoints(Vec<MountPoint>);

impl Args {
    /// Prints the volumes of the mount points.
    ///
    /// # Errors
    /// The first path that is not a mount point.
    pub fn run(self, json: bool) -> CommandResult {
        let one = |path: PathBuf| Ok(MountPoint { volume: text_of(&path)?, path });
        let all = self.bare.into_iter().chain(self.named);
        let found = all.map(one).collect::<CommandResult<_>>()?;
        output::show(json, &MountPoints(found));
        Ok(())
    }
}

/// Text of the mount point at `path`, without the dot at its end.
pub(super) fn text_of(path: &Path) -> CommandResult<String> {
    let (parent, name) = parent_and_name(path)?;
    let property = [b"afs.lsmount.", name.as_bytes()].concat();
    match attribute::try_get(&parent, &property) {
        Ok(value) => {
            let text = String::from_utf8_lossy(&value);
            let text = text.trim_end_matches(['\0', '\n']);
            Ok(text.strip_suffix('.').unwrap_or(text).to_owned())
        }
        Err(Errno::INVAL | Errno::NODATA) if in_afs(&parent) => Err(CommandError::usage(format!(
            "fs: '{}' is not a mount point; `andrew fs mkmount` makes one",
            path.display()
        ))),
        Err(Errno::NAMETOOLONG) => {
            Err(CommandError::usage(format!("fs: the name of '{}' is too long", path.display())))
        }
        Err(Errno::NOENT) => Err(explain(path, Errno::NOENT)),
        Err(error) => Err(explain(&parent, error)),
    }
}

fn in_afs(path: &Path) -> bool {
    attribute::get(if path == OsStr::new("") { Path::new(".") } else { path }, "afs.cell").is_ok()
}

impl fmt::Display for MountPoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for MountPoint { path, volume } in &self.0 {
            writeln!(f, "'{}' is a mount point for volume '{volume}'", path.display())?;
        }
        Ok(())
    }
}
