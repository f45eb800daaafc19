//! A command's end of the control socket.

use super::frame::{Answer, Question, Statistics};
use crate::error::{CommandError, CommandResult};
use crate::state::StateDir;
use crate::sys::socket;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Longer than any call waits by itself.
const PATIENCE: Duration = Duration::from_secs(120);

/// A connection to a running cell.
pub struct ControlClient(UnixStream);

impl ControlClient {
    /// Connects to the socket at `path`.
    ///
    /// # Errors
    /// Nobody listens there, or this user may not.
    pub fn connect(path: &Path) -> io::Result<Self> {
        let stream = socket::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self(stream))
    }

    /// Connects to the cell that runs on a state directory.
    ///
    /// # Errors
    /// None runs; the message says how to start one.
    pub fn of(state: &StateDir) -> CommandResult<Self> {
        let shown = state.path().display();
        if state.running()?.is_none() {
            return Err(CommandError::usage(format!(
                "no cell is running on {shown}; start one with `andrew up`, or name servers with --servers"
            )));
        }
        Self::connect(&state.control())
            .map_err(|e| CommandError::failed(format!("cannot reach the cell running on {shown}: {e}")))
    }

    /// Asks one question and waits for its answer.
    ///
    /// # Errors
    /// The cell ended, or did not answer in two minutes.
    pub fn ask(&mut self, question: &Question) -> io::Result<Answer> {
        // A cell that turns us away may have closed before it heard the question.
        let asked = question.write(&mut &self.0);
        Answer::read(&mut &self.0).or_else(|error| asked.and(Err(error)))
    }

    /// The cell's statistics.
    ///
    /// # Errors
    /// As [`ControlClient::ask`], or an answer that makes no sense.
    pub fn statistics(&mut self) -> io::Result<Statistics> {
        match self.ask(&Question::Statistics)? {
            Answer::Done(json) => Ok(serde_json::from_slice(&json)?),
            other => Err(io::Error::other(format!("the cell answered {other:?}"))),
        }
    }
}
