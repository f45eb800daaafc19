//! `andrew drive serve`: runs a drive on this host.

use crate::commands::serve;
use crate::daemon::{self, Daemon, DaemonOptions};
use crate::error::{CommandError, CommandResult};
use afs_cell::drives::{DriveDaemon, DriveDaemonOptions};
use afs_net::System;
use afs_own as own;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Longest time that disk operations in progress may take when the drive stops.
const STOP_MAX: Duration = Duration::from_secs(10);

/// Options of `andrew drive serve`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The first start prints a join key, which a file server needs to take the drive (`andrew drive add`). Until then every start
prints it again.

Examples:
  andrew drive serve --dir /srv/drive --listen 192.0.2.9 --detach")]
pub struct Args {
    /// Directory of the drive: its keys and its chunks; made if it does not exist
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Where to listen, by TCP; the port is 7010 unless it is named
    #[arg(long, value_name = "IP[:PORT]", value_parser = super::address)]
    listen: SocketAddr,
    #[command(flatten)]
    daemon: DaemonOptions,
}

struct Serving {
    system: Arc<System>,
    drive: DriveDaemon,
}

/// Output of `andrew drive serve`.
#[derive(Serialize, Deserialize)]
struct Served {
    listen: SocketAddr,
    /// Until a file server has the drive.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    join_key: Option<String>,
}

impl Args {
    pub(super) fn run(self, json: bool) -> CommandResult {
        // The drive opens files below it as long as it runs, and a daemon leaves the directory in which it was started.
        let directory = afs_cell::mounts::absolute(&self.dir)?;
        own::given_directory(&directory)
            .map_err(|error| CommandError::failed(format!("drive: {}: {error}", directory.display())))?;
        let log = directory.join("log");
        let options = DriveDaemonOptions { directory, listen: self.listen };
        daemon::run(self.daemon, json, &log, || {
            let system = serve::new_system()?;
            let drive = DriveDaemon::start(&system, &options).map_err(afs_cell::CellError::from)?;
            Ok(Serving { system, drive })
        })
    }
}

impl Daemon for Serving {
    type Output = Served;

    fn output(&self) -> Served {
        let join_key = self.drive.join_key().map(|key| key.to_text().to_string());
        Served { listen: self.drive.at(), join_key }
    }

    fn stop(self) -> CommandResult {
        self.drive.stop();
        self.system.shutdown(STOP_MAX);
        Ok(())
    }
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the drive listens at {}", self.listen)?;
        if let Some(key) = &self.join_key {
            writeln!(f, "no file server has it yet; on the file server's host:")?;
            writeln!(f, "  andrew drive add NAME --address {}", self.listen)?;
            writeln!(f, "which asks for this join key, or takes a file with it by --join-key FILE:")?;
            writeln!(f, "  {key}")?;
        }
        Ok(())
    }
}
