//! `andrew-lab peer`.

use afs_lab::layers::Peer;
use andrew::error::{CommandError, CommandResult};
use andrew::output;
use serde::Serialize;
use std::fmt;
use std::net::SocketAddr;

/// Options of `andrew-lab peer`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Sends streams of bytes by UDP, TCP, Rx and the data path to clients that connect, for Tables 1 and 2 and Figure 2 of CITI TR
01-3, and says first where it listens. Its other ports are chosen by the kernel. It ends with its input, and no
other host should be able to reach it.

Example:
  andrew-lab peer --listen 192.0.2.1:7020                      on one machine
  andrew-lab run citi01-3.table1 --peer 192.0.2.1:7020         on the other")]
pub struct Args {
    /// Address of this machine, with a port; 0 is one that is free
    #[arg(long, value_name = "IP:PORT")]
    listen: SocketAddr,
}

impl Args {
    /// Sends until its input ends.
    ///
    /// # Errors
    /// The address is not of this machine, or in use.
    pub fn run(self, json: bool) -> CommandResult {
        let failed = |error: std::io::Error| {
            CommandError::failed(format!("peer: cannot listen at {}: {error}", self.listen))
        };
        let peer = Peer::listen(self.listen).map_err(failed)?;
        output::show(json, &Listening { address: peer.address() });
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).map_err(failed)?;
        Ok(())
    }
}

#[derive(Serialize)]
struct Listening {
    address: SocketAddr,
}

impl fmt::Display for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.address)
    }
}
