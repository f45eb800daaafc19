//! `andrew run-with-token`: runs a command in a session with its own token.

use super::login::cell_choice::CellOptions;
use super::login::exchange;
use super::login::obtain::LoginOptions;
use super::login::service::Network;
use crate::error::{CommandError, CommandResult};
use crate::sys::signals::{STOP, Signals};
use afs_cell::tokens::{
    HeldByMount, KeptToken, Mounts, SESSION_VARIABLE, SessionId, TOKENS_VARIABLE, TokenStore, keep, runtime,
};
use afs_net::threads::{self, refused};
use afs_rpc::{Env, EnvExt};
use afs_wire::ids::CellName;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use parking_lot::Mutex;

/// Options of `andrew run-with-token`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The command runs in a session of its own: its token is not used by your other programs, nor theirs by it. The token is
renewed while the command runs, as long as the cell allows, and removed when it ends. Without --user and --token-file
the session begins with your token of the cell. With --without the session has none of the rights of a group, and cannot
resume them; the file of --token-file keeps its own token then, and gets no renewed one.

Examples:
  andrew run-with-token --user backup --ssh-key /etc/backup.key -- rsync -a /srv/ /afs/example.org/backup/
  andrew run-with-token --without system:administrators -- make install
  andrew login robot --token-file /var/lib/robot/token && \\
    andrew run-with-token --token-file /var/lib/robot/token -- make nightly

Exit status: that of the command, or 128 plus the signal's number if a signal ended it.")]
pub struct Args {
    /// Log in as this user first
    #[arg(long, value_name = "USER", conflicts_with = "token_file")]
    user: Option<String>,
    /// Read the token from this file (mode 600), and write renewed tokens to it
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Leave out the rights of this group; may be given several times
    #[arg(long, value_name = "GROUP")]
    without: Vec<String>,
    #[command(flatten)]
    cell: CellOptions,
    #[command(flatten)]
    options: LoginOptions,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// A session.
struct Session {
    id: SessionId,
    cell: CellName,
    store: TokenStore,
    file: PathBuf,
    /// Whether the session has ended. Held while its token is handed to mounts.
    ended: Mutex<bool>,
}

/// Interval of looks for mounts that do not have the token of the session.
const MOUNTS_CHECK: Duration = Duration::from_secs(1);

impl Args {
    /// Runs the command and exits with its status.
    ///
    /// # Errors
    /// There is no token, or the command cannot be started.
    pub fn run(self) -> CommandResult {
        let kept = self.token()?;
        // Before any thread is started, so that all threads block these signals instead of ending the process.
        let signals = Signals::block(&STOP).map_err(CommandError::failed)?;
        let network = Network::open()?;
        let now = network.system.wall();
        if !kept.is_good_at(now) {
            return Err(CommandError::usage(format!(
                "the token of {} in {} has expired; log in again",
                kept.user, kept.cell
            )));
        }
        let kept = exchange::without(kept, &self.without)?;
        let session = Arc::new(Session::begin(SessionId(network.system.random_bytes()), &kept)?);
        // A command whose signals nobody forwards is not begun.
        let child = forward(&signals).and_then(|pid| {
            let child = self.start(&session, &signals)?;
            let _ = pid.send(child.id());
            Ok(child)
        });
        let child = child.inspect_err(|_| session.end())?;
        let (rx, renewing, file) = (network.udp.rx().clone(), session.clone(), self.token_file.clone());
        network.system.spawn(Box::pin(async move {
            keep(&rx, kept, |renewed| renewing.renewed(renewed, file.as_ref())).await;
        }));
        let following = session.clone();
        if let Err(error) = threads::start("mounts", move || following.follow_mounts()) {
            tracing::warn!("mounts that begin now will not know the session: {error}");
        }
        let status = wait(child);
        session.end();
        std::process::exit(code(status?));
    }

    fn token(&self) -> CommandResult<KeptToken> {
        if let Some(file) = &self.token_file {
            let found = TokenStore::file(file)?.all()?.pop();
            return found.ok_or_else(|| {
                let shown = file.display();
                CommandError::usage(format!(
                    "{shown} does not exist; create it with `andrew login --token-file {shown}`"
                ))
            });
        }
        let chosen = self.cell.choose()?;
        if self.user.is_some() {
            return self.options.obtain(self.user.as_deref(), &chosen);
        }
        TokenStore::current()?.get(&chosen.cell)?.ok_or_else(|| {
            CommandError::usage(format!(
                "you have no token of {}; give --user or --token-file, or log in",
                chosen.cell
            ))
        })
    }

    fn start(&self, session: &Session, signals: &Signals) -> CommandResult<Child> {
        let (program, arguments) =
            self.command.split_first().ok_or_else(|| CommandError::usage("no command"))?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env(SESSION_VARIABLE, session.id.to_string())
            .env(TOKENS_VARIABLE, &session.file);
        signals.unblocked_in(&mut command);
        command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => {
                CommandError::failed(refused(&program.display().to_string(), &error))
            }
            _ => CommandError::usage(format!("cannot run {}: {error}", program.display())),
        })
    }
}

impl Session {
    fn begin(id: SessionId, kept: &KeptToken) -> CommandResult<Self> {
        let runtime = runtime().ok_or_else(|| CommandError::usage("there is no home directory; set HOME"))?;
        let file = runtime.join("sessions").join(id.to_string());
        let (cell, store) = (kept.cell.clone(), TokenStore::File(file.clone()));
        let session = Self { id, cell, store, file, ended: Mutex::new(false) };
        session.store.put(kept)?;
        let handed = Mounts::running().hand_over(Some(id), kept);
        handed.refusals.iter().for_each(|line| tracing::warn!("a mount did not take the token: {line}"));
        // A mount that does not know the session would take its processes for others of the user.
        exchange::check_handed(kept, &handed).inspect_err(|_| session.end())?;
        Ok(session)
    }

    /// Writes a renewed token to both files, if they have one of the same login with the same groups. Mounts renew theirs
    /// themselves.
    fn renewed(&self, kept: &KeptToken, file: Option<&PathBuf>) {
        let stores = [Some(self.store.clone()), file.and_then(|file| TokenStore::file(file).ok())];
        for store in stores.into_iter().flatten() {
            let renew = || match store.get(&kept.cell)? {
                Some(in_file) if kept.is_renewal_of(&in_file) => store.put(kept),
                _ => Ok(()),
            };
            if let Err(error) = renew() {
                tracing::warn!("a renewed token was not written: {error}");
            }
        }
    }

    /// Hands the token to mounts that have begun, or have learned of the cell, meanwhile: there the processes of the session
    /// would be taken for others of the user. Goes on until the session ends.
    fn follow_mounts(&self) {
        loop {
            std::thread::sleep(MOUNTS_CHECK);
            let mounts = Mounts::running();
            let lacks = |mount: &HeldByMount| {
                mount.cells.contains(&self.cell)
                    && mount.tokens.iter().all(|held| held.cell != self.cell.as_str())
            };
            if !mounts.held_by_mount(Some(self.id)).iter().any(lacks) {
                continue;
            }
            let ended = self.ended.lock();
            if *ended {
                return;
            }
            if let Ok(Some(kept)) = self.store.get(&self.cell) {
                mounts.hand_over(Some(self.id), &kept);
            }
        }
    }

    fn end(&self) {
        *self.ended.lock() = true;
        Mounts::running().forget(Some(self.id), None);
        let _ = fs::remove_file(&self.file);
    }
}

/// Forwards signals to the command whose process number it is sent.
fn forward(signals: &Signals) -> CommandResult<Sender<u32>> {
    let (tell, told) = channel::<u32>();
    let signals = signals.clone();
    // The thread ends with the process, after the command.
    let forward = move || {
        let pid = told.recv().ok().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        while let (Some(pid), Ok(signal)) = (pid, signals.wait()) {
            // The terminal sends its signals to both processes.
            let from_terminal = signal == libc::SIGINT && io::IsTerminal::is_terminal(&io::stdin());
            if let (Some(signal), false) = (Signal::from_named_raw(signal), from_terminal) {
                let _ = kill_process(pid, signal);
            }
        }
    };
    threads::start("signals", forward).map_err(CommandError::failed)?;
    Ok(tell)
}

fn wait(mut child: Child) -> CommandResult<ExitStatus> {
    child.wait().map_err(|error| CommandError::failed(format!("cannot wait for the command: {error}")))
}

fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
}
