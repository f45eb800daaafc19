//! `andrew drive`: drives of a file server on other hosts and in buckets.

mod add;
mod check;
mod drain;
mod list;
mod lost;
mod rekey;
mod remove;
mod serve;
mod use_;

use crate::error::{CommandError, CommandResult};
use crate::running_cells;
use afs_cell::control::ControlClient;
use afs_cell::drives::{DriveAnswer, DriveRequest};
use clap::Subcommand;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Options of `andrew drive`.
#[derive(clap::Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "\
A drive stores the bytes of files for a file server on another host, or is a bucket of an object store. It knows no names, users and
volumes.

Examples:
  andrew drive serve --dir /srv/drive --listen 192.0.2.9 --detach      (on the host with the disks; prints a join key)
  andrew drive add big --address 192.0.2.9                             (on the file server's host; asks for the join key)
  andrew drive add cold --bucket s3://andrew/example.org --endpoint https://s3.example.org --credentials /root/s3
  andrew drive use big"
)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run a drive on this host, for a file server on another one
    Serve(serve::Args),
    /// Join a drive on another host, or a bucket, to the file server that runs here
    Add(OnServer<add::Args>),
    /// Show the drives of the file server that runs here
    List(OnServer<list::Args>),
    /// Write new data to a drive from now on
    Use(OnServer<use_::Args>),
    /// Read everything on a drive, and compare it with the checksums
    Check(OnServer<check::Args>),
    /// Move everything on a drive to another one, in the background
    Drain(OnServer<drain::Args>),
    /// Give a drive on another host another key
    Rekey(OnServer<rekey::Args>),
    /// Give a drive up that will not come back
    Lost(OnServer<lost::Args>),
    /// Remove a drive on which nothing is
    Remove(OnServer<remove::Args>),
}

/// A command for the file server that runs on this host.
#[derive(clap::Args, Debug)]
struct OnServer<C: clap::Args> {
    #[command(flatten)]
    command: C,
    /// State directory of the cell that runs here [default: $ANDREW_STATE, or that of your only cell]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

impl Args {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// One line; status 2 if the input was invalid.
    pub fn run(self, json: bool) -> CommandResult {
        match self.command {
            Command::Serve(args) => args.run(json),
            Command::Add(args) => args.command.run(&ask(args.state), json),
            Command::List(args) => args.command.run(&ask(args.state), json),
            Command::Use(args) => args.command.run(&ask(args.state), json),
            Command::Check(args) => args.command.run(&ask(args.state), json),
            Command::Drain(args) => args.command.run(&ask(args.state), json),
            Command::Rekey(args) => args.command.run(&ask(args.state), json),
            Command::Lost(args) => args.command.run(&ask(args.state), json),
            Command::Remove(args) => args.command.run(&ask(args.state), json),
        }
    }
}

/// Makes a request to the file server.
pub(super) fn ask(state: Option<PathBuf>) -> impl Fn(DriveRequest) -> CommandResult<DriveAnswer> {
    move |request| {
        let state = running_cells::of_process(state.as_deref())?;
        let answer = ControlClient::of(&state)?.drives(&request);
        answer.map_err(|why| CommandError::failed(format!("drive: {why}")))
    }
}

/// Where a drive listens if nothing else is said: behind the ports of AFS.
const PORT: u16 = 7010;

/// `IP` or `IP:PORT`.
fn address(text: &str) -> Result<SocketAddr, String> {
    let with_port = || text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, PORT));
    text.parse().or_else(|_| with_port()).map_err(|_| "write IP or IP:PORT".to_owned())
}

/// An answer to another request than was made.
fn unexpected() -> CommandError {
    CommandError::failed("drive: the cell gave an answer that this program does not know")
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_address_has_the_usual_port_unless_it_says_another() {
        let read = |text| super::address(text).map(|address| address.to_string());
        assert_eq!(read("192.0.2.9"), Ok("192.0.2.9:7010".to_owned()));
        assert_eq!(read("::1"), Ok("[::1]:7010".to_owned()));
        assert_eq!(read("192.0.2.9:1"), Ok("192.0.2.9:1".to_owned()));
        assert!(read("host").is_err() && read("192.0.2.9:").is_err());
    }
}
