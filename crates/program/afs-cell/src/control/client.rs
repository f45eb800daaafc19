//! Client of the control socket.

use super::error::ControlError;
use super::frame::{ControlReply, ControlRequest, Statistics};
use crate::drives::{DriveAnswer, DriveRequest};
use crate::error::CellResult;
use crate::servers::{DriveCounts, ImportRequest, Imported, PartitionReport, PartitionScrub};
use crate::socket;
use crate::state::StateDir;
use serde::de::DeserializeOwned;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Time-out of a request: longer than any call waits by itself.
const PATIENCE: Duration = Duration::from_secs(120);
/// Time-out of an import, which for a hundred thousand users or volumes takes long, and of the check of a drive.
const IMPORT_PATIENCE: Duration = Duration::from_secs(3600);

/// A connection to a running cell.
pub struct ControlClient(UnixStream);

impl ControlClient {
    /// Connects to the socket at `path`.
    ///
    /// # Errors
    /// No process listens there, or this user may not connect.
    pub fn connect(path: &Path) -> io::Result<Self> {
        let stream = socket::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self(stream))
    }

    /// Connects to the cell that runs on a state directory.
    ///
    /// # Errors
    /// No cell runs on it, or it does not accept the connection.
    pub fn of(state: &StateDir) -> CellResult<Self> {
        if state.running()?.is_none() {
            return Err(ControlError::NotRunning(state.path().to_owned()).into());
        }
        Self::connect(&state.control())
            .map_err(|error| ControlError::Unreachable { state: state.path().to_owned(), error }.into())
    }

    /// Sends a request and waits for its reply.
    ///
    /// # Errors
    /// The cell ended, or did not reply within two minutes.
    pub fn ask(&mut self, request: &ControlRequest) -> io::Result<ControlReply> {
        socket::ask(&self.0, request)
    }

    /// Requests the cell's statistics.
    ///
    /// # Errors
    /// As [`ControlClient::ask`], or the reply is invalid.
    pub fn statistics(&mut self) -> io::Result<Statistics> {
        self.json(&ControlRequest::Statistics)
    }

    /// Requests the reports of the scrubs.
    ///
    /// # Errors
    /// As [`ControlClient::statistics`].
    pub fn scrubs(&mut self) -> io::Result<Vec<PartitionScrub>> {
        self.json(&ControlRequest::Scrub)
    }

    /// Requests the counters of the data path; `None` where there is no file server.
    ///
    /// # Errors
    /// As [`ControlClient::statistics`]; also of a cell of an earlier version, which does not know the request.
    pub fn data_path(&mut self) -> io::Result<Option<DriveCounts>> {
        self.json(&ControlRequest::DataPath)
    }

    /// Requests the states of the partitions.
    ///
    /// # Errors
    /// As [`ControlClient::data_path`].
    pub fn partitions(&mut self) -> io::Result<Vec<PartitionReport>> {
        self.json(&ControlRequest::Partitions)
    }

    /// Imports the databases of another cell.
    ///
    /// # Errors
    /// Why the import failed, as one line for the user.
    pub fn import(&mut self, request: &ImportRequest) -> Result<Imported, String> {
        let request = serde_json::to_vec(request).map_err(|e| e.to_string())?;
        self.long(&ControlRequest::Import(request))
    }

    /// Makes a request about drives.
    ///
    /// # Errors
    /// Why it was not done, as one line for the user.
    pub fn drives(&mut self, request: &DriveRequest) -> Result<DriveAnswer, String> {
        let request = serde_json::to_vec(request).map_err(|e| e.to_string())?;
        self.long(&ControlRequest::Drives(request))
    }

    /// Makes a request that may take long.
    fn long<T: DeserializeOwned>(&mut self, request: &ControlRequest) -> Result<T, String> {
        let failed = |error: &dyn std::fmt::Display| format!("the cell does not reply: {error}");
        self.0.set_read_timeout(Some(IMPORT_PATIENCE)).map_err(|e| failed(&e))?;
        match self.ask(request).map_err(|e| failed(&e))? {
            ControlReply::Done(json) => serde_json::from_slice(&json).map_err(|e| failed(&e)),
            ControlReply::Refused(line) => Err(line),
            ControlReply::Aborted(code) => Err(failed(&code)),
        }
    }

    fn json<T: DeserializeOwned>(&mut self, request: &ControlRequest) -> io::Result<T> {
        match self.ask(request)? {
            ControlReply::Done(json) => Ok(serde_json::from_slice(&json)?),
            other => Err(io::Error::other(format!("the cell answered {other:?}"))),
        }
    }
}
