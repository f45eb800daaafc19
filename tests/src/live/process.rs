//! Programs, run to their end or in the background; none outlives the test.

use std::fs::File;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// So many seconds.
#[must_use]
pub const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Runs a program that must succeed within `limit`; answers its standard output.
///
/// # Panics
/// If it fails, or is not done in time (it is killed then).
pub fn run(command: Command, limit: Duration) -> String {
    let what = format!("{command:?}");
    let output = run_any(command, limit);
    assert!(
        output.status.success(),
        "{what}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a program to its end, whatever that is. After `limit` it is killed.
///
/// # Panics
/// If it cannot be started.
pub fn run_any(mut command: Command, limit: Duration) -> Output {
    let what = format!("{command:?}");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{what}: {error}"));
    // Pipes are emptied while the program runs, or it could block on a full one.
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let status = wait(&mut child, limit).unwrap_or_else(|| {
        eprintln!("{what}: killed after {limit:?}");
        let _ = child.kill();
        child.wait().unwrap_or(ExitStatus::from_raw(9))
    });
    Output { status, stdout: stdout.join().unwrap_or_default(), stderr: stderr.join().unwrap_or_default() }
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut out = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut out);
        }
        out
    })
}

fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let end = Instant::now() + limit;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A program in the background, with its output in a log. Ended when this is dropped.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    log: std::path::PathBuf,
}

impl Daemon {
    /// Starts it; its output is added to `log`.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(mut command: Command, log: &Path) -> Self {
        let what = format!("{command:?}");
        let open = || File::options().create(true).append(true).open(log);
        let (out, err) = (open(), open());
        let (Ok(out), Ok(err)) = (out, err) else { panic!("{}: cannot be written", log.display()) };
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        let child = command.spawn().unwrap_or_else(|error| panic!("{what}: {error}"));
        Self { child, log: log.to_owned() }
    }

    /// Its process number. `nsenter` replaces itself with the program, so it is the program's.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub fn is_over(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// All it has said.
    #[must_use]
    pub fn said(&self) -> String {
        std::fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Kills it where it stands.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to end, and answers how it did; kills it after `limit`.
    pub fn end(&mut self, limit: Duration) -> Option<ExitStatus> {
        // The number of a process that is gone may be somebody else's by now.
        if let Ok(Some(status)) = self.child.try_wait() {
            return Some(status);
        }
        let _ = Command::new("kill").arg(self.pid().to_string()).output();
        let status = wait(&mut self.child, limit);
        if status.is_none() {
            self.kill();
        }
        status
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if !self.is_over() {
            self.end(seconds(10));
        }
    }
}
