//! `andrew fs pin` and `andrew fs unpin`.

use super::attribute;
use super::path_in_mount;
use super::paths::Paths;
use crate::error::{CommandError, CommandResult};
use afs_cell::tokens::{Mounts, SessionId};
use afs_venus::PinOptions;
use rustix::io::Errno;
use std::io::{self, Write};
use std::path::Path;

/// Options of `andrew fs pin`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
What is pinned is fetched in the background, stays in the cache whatever else is read, and is fetched again when it
changes; `andrew fs pins` shows how far that is. It can be read while its server is away, as long as the server's
promise to tell of changes lasts: hours with Andrew and OpenAFS. Only what you may read is fetched. Pins hold over
restarts of the mount, and may take half of its cache. Mount points below the path are not followed.

With --offline, what is pinned can be read by you as it was last known for as long as no server replies, after a
restart of the mount, too. It may have changed at the server meanwhile, and your rights may have been taken away:
`andrew fs pins`, `andrew fs explain`, `andrew status`, the log and the attribute afs.unpromised say so. Nothing can
be changed meanwhile; when a server replies, everything is asked for again first. After a crash of the machine the
cache is empty.

Examples:
  andrew fs pin ~/afs/talk/slides.pdf
  andrew fs pin --offline --recursive ~/afs/projects/thesis
  andrew fs pin --recursive ~/afs/projects/thesis
  andrew fs pins")]
pub struct PinArgs {
    #[command(flatten)]
    paths: Paths,
    /// With all that is below a directory; without this its names alone
    #[arg(short, long)]
    recursive: bool,
    /// Can be read without a promise, as it was last known, while no server replies
    #[arg(long)]
    offline: bool,
}

/// Options of `andrew fs unpin`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Paths are those that were pinned. Root ends the pins of all users.

Examples:
  andrew fs unpin ~/afs/projects/thesis")]
pub struct UnpinArgs {
    #[command(flatten)]
    paths: Paths,
}

impl PinArgs {
    /// Pins the paths.
    ///
    /// # Errors
    /// The first path that cannot be pinned, with the reason.
    pub fn run(self) -> CommandResult {
        let (mounts, session) = (Mounts::running(), SessionId::current()?);
        let options = PinOptions { is_recursive: self.recursive, is_offline: self.offline };
        let pin = |device: &str, rest: &[u8]| mounts.pin(device, session, rest, options);
        self.paths.all().iter().try_for_each(|path| {
            order(path, "pinned", pin)?;
            if !self.recursive && path.is_dir() {
                let shown = path.display();
                let _ = writeln!(
                    io::stderr(),
                    "fs: the names in '{shown}' are pinned, and not its files; --recursive pins those too"
                );
            }
            Ok(())
        })
    }
}

impl UnpinArgs {
    /// Ends the pins of the paths.
    ///
    /// # Errors
    /// The first path of which there is no pin, or whose pin cannot be ended.
    pub fn run(self) -> CommandResult {
        let mounts = Mounts::running();
        let unpin = |device: &str, rest: &[u8]| mounts.unpin(device, rest);
        self.paths.all().iter().try_for_each(|path| order(path, "unpinned", unpin))
    }
}

fn order(path: &Path, what: &str, ask: impl Fn(&str, &[u8]) -> io::Result<bool>) -> CommandResult {
    let (mount, rest) = path_in_mount::split(path)?;
    if afs_cell::mounts::is_dead(&mount.directory) {
        return Err(attribute::explain(path, Errno::NOTCONN));
    }
    let shown = path.display();
    match ask(&mount.device, &rest) {
        Ok(true) => Ok(()),
        Ok(false) => Err(CommandError::failed(format!(
            "fs: the mount of '{shown}' is another user's, who alone can pin there; see `andrew status`"
        ))),
        Err(error) => Err(CommandError::failed(format!("fs: '{shown}' is not {what}: {error}"))),
    }
}
