//! `andrew fs rmmount`: removes mount points.

use super::attribute;
use super::lsmount;
use super::paths::parent_and_name;
use crate::error::CommandResult;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Options of `andrew fs rmmount`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The volume of a mount point is not changed; `andrew vos remove` removes volumes. `rm -r` would remove the
contents of the volume, and leave the mount point.

Examples:
  andrew fs rmmount ~/afs/projects")]
pub struct Args {
    /// Mount points
    #[arg(value_name = "DIR", required_unless_present = "named")]
    bare: Vec<PathBuf>,
    /// The same, as OpenAFS's fs takes them
    #[arg(long = "dir", value_name = "DIR", num_args = 1.., hide_short_help = true)]
    named: Vec<PathBuf>,
}

impl Args {
    /// Removes the mount points, in order.
    ///
    /// # Errors
    /// The first path that is not a mount point or may not be removed.
    pub fn run(self) -> CommandResult {
        for path in self.bare.into_iter().chain(self.named) {
            lsmount::text_of(&path)?;
            let (parent, name) = parent_and_name(&path)?;
            attribute::set(&parent, "afs.rmmount", name.as_bytes())?;
            // The kernel cannot invalidate a name while it sets an attribute of the directory.
            attribute::get(&parent, "afs.settled")?;
        }
        Ok(())
    }
}
