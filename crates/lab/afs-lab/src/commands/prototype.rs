//! `andrew-lab prototype`: processes of the prototype of 1984, which the lab starts itself.

use afs_lab::prototype::{ClientPlace, ClientRun, Ended, Listener, session};
use afs_net::threads;
use andrew::error::{CommandError, CommandResult};
use andrew::output;
use clap::Subcommand;
use serde::Serialize;
use std::fmt;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// `andrew-lab prototype`.
#[derive(clap::Args, Debug)]
#[command(arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Listen at a loopback address, with a process for each connection, until the input ends
    Serve {
        /// Directory for files
        #[arg(long, value_name = "DIR")]
        directory: PathBuf,
    },
    /// Serve the connection that is the input
    Session {
        /// Directory for files
        #[arg(long, value_name = "DIR")]
        directory: PathBuf,
    },
    /// Run the script of the Andrew benchmark once
    Client {
        /// Where the server listens
        #[arg(long, value_name = "IP:PORT")]
        server: SocketAddr,
        /// Name of a target that does not exist
        #[arg(long, value_name = "NAME")]
        target: String,
        /// Directory for copies, which nothing else uses
        #[arg(long, value_name = "DIR")]
        cache: PathBuf,
        /// Seconds to wait in the place of compiling
        #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=3600))]
        think: u64,
    },
}

impl Args {
    /// Runs the selected process.
    ///
    /// # Errors
    /// Files, connections or calls fail, status 1.
    pub fn run(self, json: bool) -> CommandResult {
        match self.command {
            Command::Serve { directory } => serve(&directory),
            Command::Session { directory } => {
                let ended = session(&directory).map_err(|error| failed("serve a connection", error))?;
                output::show(json, &Told(ended));
                Ok(())
            }
            Command::Client { server, target, cache, think } => {
                let place = ClientPlace { server, cache: &cache };
                let run = place.run(&target, Duration::from_secs(think));
                output::show(json, &Run(run.map_err(|error| failed("run a client", error))?));
                Ok(())
            }
        }
    }
}

fn failed(what: &str, error: impl fmt::Display) -> CommandError {
    CommandError::failed(format!("prototype: cannot {what}: {error}"))
}

/// Says where it listens, and a line for each process that has ended.
fn serve(directory: &std::path::Path) -> CommandResult {
    let cannot = |error: std::io::Error| failed("listen", error);
    let program = std::env::current_exe().map_err(cannot)?;
    let listener = Listener::open(&program, directory).map_err(cannot)?;
    tell(&listener.address().map_err(cannot)?.to_string());
    let serve = move || listener.serve(|ended| tell(&serde_json::to_string(&ended).unwrap_or_default()));
    threads::start("prototype", serve).map_err(cannot)?;
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).map(drop).map_err(cannot)
}

fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    // The lab has gone if nothing takes it.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

#[derive(Serialize)]
struct Told(Ended);

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ended { user_us, system_us, written_bytes, calls, error } = &self.0;
        let calls: u64 = calls.values().sum();
        writeln!(
            f,
            "{calls} calls, {user_us} us user, {system_us} us system, {written_bytes} bytes written"
        )?;
        error.as_ref().map_or(Ok(()), |error| writeln!(f, "{error}"))
    }
}

#[derive(Serialize)]
struct Run(ClientRun);

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ClientRun { seconds, phases, checks, checks_seconds } = &self.0;
        for (phase, seconds) in phases {
            writeln!(f, "{phase:<10} {seconds:.3} s")?;
        }
        writeln!(f, "{:<10} {seconds:.3} s", "all")?;
        writeln!(f, "{checks} TestAuth calls took {checks_seconds:.3} s")
    }
}
