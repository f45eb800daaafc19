//! Programs run to their end or in the background; none outlives the test.

use std::fs::File;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// This many seconds.
#[must_use]
pub const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Runs a program that must succeed within `limit`; returns its standard output.
///
/// # Panics
/// If it fails, or exceeds the limit (it is killed then).
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

/// Runs a program to its end, with any outcome. After `limit` it is killed.
///
/// # Panics
/// If it cannot be started.
pub fn run_any(mut command: Command, limit: Duration) -> Output {
    let what = format!("{command:?}");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{what}: {error}"));
    // Pipes are read while the program runs, since it could block on a full one.
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

/// A program in the background, with its output in a log; ended when this is dropped.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    log: std::path::PathBuf,
}

impl Daemon {
    /// Starts it; its output is appended to `log`.
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

    /// Its process id. `nsenter` replaces itself by the program, so the id is that of the program.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub fn is_over(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Its output so far.
    #[must_use]
    pub fn said(&self) -> String {
        std::fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Kills it with SIGKILL.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends SIGTERM and returns the exit status; kills it after `limit`.
    pub fn end(&mut self, limit: Duration) -> Option<ExitStatus> {
        // The process id may belong to another process once this one has been waited for.
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
