//! `andrew fs mkmount`: creates a mount point.

use super::attribute::{self, explain};
use super::path_cell;
use super::paths::parent_and_name;
use crate::commands::vos::ops::{Ops, told};
use crate::commands::vos::route_options::RouteOptions;
use crate::error::{CommandError, CommandResult};
use afs_wire::error::AbortCode;
use afs_wire::ids::CellName;
use rustix::io::Errno;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Options of `andrew fs mkmount`.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "andrew fs mkmount [OPTIONS] DIR VOLUME",
    after_help = "Examples:\n  andrew fs mkmount ~/afs/projects projects\n  andrew fs mkm -dir d -vol v -rw"
)]
pub struct Args {
    /// The mount point to make, then the volume's name or number
    #[arg(value_name = "DIR VOLUME", num_args = 0..=2)]
    bare: Vec<String>,
    /// The mount point to make, as OpenAFS's fs takes it
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The volume, as OpenAFS's fs takes it
    #[arg(long, value_name = "VOLUME")]
    vol: Option<String>,
    /// Cell of the volume, if it is not that of the directory
    #[arg(long, value_name = "CELL")]
    cell: Option<String>,
    /// Always use the read-write volume, never a read-only copy
    #[arg(long)]
    rw: bool,
    /// Do not check that the volume exists
    #[arg(long)]
    fast: bool,
}

impl Args {
    /// Creates the mount point: a symbolic link of a special form (docs/protocol/volumes.md "5. Mount points and volume
    /// choice").
    ///
    /// # Errors
    /// An invalid name of a volume, a volume that does not exist, a path that exists or is not in AFS.
    pub fn run(self) -> CommandResult {
        let mut bare = self.bare.into_iter();
        let directory = self.dir.or_else(|| bare.next().map(PathBuf::from));
        let volume = self.vol.or_else(|| bare.next());
        let (Some(directory), Some(volume), None) = (directory, volume, bare.next()) else {
            return Err(CommandError::usage(
                "fs: mkmount needs a directory and a volume; see `andrew fs mkmount --help`",
            ));
        };
        let text = text(&volume, self.cell.as_deref(), self.rw)?;
        let (parent, name) = parent_and_name(&directory)?;
        // Outside of AFS this would create an ordinary dangling link.
        let cell = attribute::get_text(&parent, "afs.cell")?;
        let cell = self.cell.unwrap_or(cell);
        if !self.fast {
            is_there(&parent, &cell, &volume)?;
        }
        match rustix::fs::symlink(&*text, &directory) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(CommandError::usage(format!(
                "fs: '{}' exists; give a path that does not",
                directory.display()
            ))),
            // It was created, although its volume does not exist.
            Err(Errno::NODEV) if self.fast => Ok(()),
            Err(Errno::NODEV) => {
                // No mount knew the cell's servers, so the volume could not be looked up before.
                let _ = attribute::set(&parent, "afs.rmmount", name.as_bytes());
                Err(no_volume(&volume, &cell))
            }
            Err(error) => Err(explain(&directory, error)),
        }
    }
}

/// Makes a mount point for a volume that is there.
///
/// # Errors
/// As [`Args::run`].
pub(in crate::commands) fn mount_volume(directory: &Path, volume: &str) -> CommandResult {
    let (dir, vol) = (Some(directory.to_owned()), Some(volume.to_owned()));
    Args { bare: Vec::new(), dir, vol, cell: None, rw: false, fast: false }.run()
}

/// Looks the volume up in the cell, if a mount knows the cell's servers.
fn is_there(parent: &Path, cell: &str, volume: &str) -> CommandResult {
    let name = CellName::new(cell).map_err(CommandError::usage)?;
    let Some(place) = path_cell::of_cell(&name, parent)? else { return Ok(()) };
    let wanted = volume.to_owned();
    let ops = Ops::open(&RouteOptions::of(&place), false)?;
    match ops.ask(|admin| async move { admin.group(&wanted).await }) {
        Ok(_) => Ok(()),
        Err(error) if error.is_refusal() || error.code() == Some(AbortCode::VL_NOENT) => {
            Err(no_volume(volume, cell))
        }
        Err(error) => {
            let told = told(&error);
            Err(CommandError {
                message: format!(
                    "{}; --fast makes the mount point without looking for the volume",
                    told.message
                ),
                ..told
            })
        }
    }
}

fn no_volume(volume: &str, cell: &str) -> CommandError {
    CommandError::usage(format!(
        "fs: there is no volume '{volume}' in {cell}; `andrew vos create` makes one, --fast makes the mount point before"
    ))
}

/// Text of the link: the kind, the cell if one is given, the volume, a dot.
fn text(volume: &str, cell: Option<&str>, read_write: bool) -> CommandResult<String> {
    let good = |c: u8| c.is_ascii_alphanumeric() || b"._-".contains(&c);
    if volume.is_empty() || volume.len() > 64 || !volume.bytes().all(good) {
        return Err(CommandError::usage(format!(
            "fs: '{volume}' is not the name of a volume; use letters, digits, '.', '-' and '_'"
        )));
    }
    if let Some(cell) = cell.filter(|c| c.is_empty() || !c.bytes().all(good)) {
        return Err(CommandError::usage(format!(
            "fs: '{cell}' is not the name of a cell; use letters, digits, '.' and '-'"
        )));
    }
    let kind = if read_write { '%' } else { '#' };
    Ok(cell.map_or(format!("{kind}{volume}."), |cell| format!("{kind}{cell}:{volume}.")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_mount_point_is_that_of_openafs() {
        assert_eq!(text("root.cell", None, false).unwrap(), "#root.cell.");
        assert_eq!(text("536870912", Some("example.org"), true).unwrap(), "%example.org:536870912.");
    }

    #[test]
    fn wrong_names_say_what_would_be_right() {
        assert_eq!(
            text("a b", None, false).unwrap_err().message,
            "fs: 'a b' is not the name of a volume; use letters, digits, '.', '-' and '_'"
        );
        assert_eq!(
            text("a", Some("x:y"), false).unwrap_err().message,
            "fs: 'x:y' is not the name of a cell; use letters, digits, '.' and '-'"
        );
    }
}
