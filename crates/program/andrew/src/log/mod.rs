//! Log of a daemon: on standard error, or in files that are set aside when they are full.
//!
//! What peers can cause is bounded twice: of lines from one place in the code the first in a window are written and the others counted, and
//! the files have a bound for all of them together.

mod lines;
mod repeats;

use afs_own::Rotated;
use lines::Log;
use repeats::RepeatedLines;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, fmt};

/// Size at which the log of a process in the background is set aside, in bytes.
const BYTES_MAX: u64 = 16 << 20;
/// Older files kept; the oldest is removed.
const KEPT: u32 = 4;

/// Any output of a log.
type Output = Box<dyn Write + Send>;

/// The log of this process. When it is dropped, the lines that were counted are told of.
pub(crate) struct Begun(RepeatedLines<Output>);

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.tell();
    }
}

/// Writes the log of this process to standard error. `default` selects its contents, unless `ANDREW_LOG` does, as in
/// `ANDREW_LOG=afs_venus=debug`.
pub(crate) fn to_standard_error(default: &str) -> Begun {
    begin(default, Box::new(io::stderr()), io::stderr().is_terminal())
}

/// Writes it into files, and whatever else writes to standard error with it.
pub(crate) fn into_file(default: &str, path: &Path) -> Begun {
    let opened = |file: &File| rustix::stdio::dup2_stderr(file).map_err(Into::into);
    begin(default, Box::new(Files(file(path).with_opened(opened))), false)
}

/// The log file of a process in the background. The start directory may be left later.
pub(crate) fn file(path: &Path) -> Rotated {
    let path = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
    Rotated::new(path, BYTES_MAX, KEPT)
}

fn begin(default: &str, out: Output, is_terminal: bool) -> Begun {
    let filter = EnvFilter::try_from_env("ANDREW_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    let log = Log::over(out);
    let repeats = RepeatedLines::new(log.clone());
    let written = fmt::layer().with_ansi(is_terminal).with_writer(log).log_internal_errors(false);
    let layers = tracing_subscriber::registry().with(filter).with(repeats.clone()).with(written);
    let _ = layers.try_init();
    Begun(repeats)
}

/// The files, as one output.
struct Files(Rotated);

impl Write for Files {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.append(line)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
