//! File of an operation on a volume that has not ended, in the journal of a user's tools.

use afs_admin::journal::{Draft, Holder, OperationId, Record};
use afs_files::{Syntax, Versioned};
use afs_wire::ids::{UnixSeconds, VolumeId};
use serde::{Deserialize, Serialize};

/// Contents of an operation's file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OperationFile {
    /// The tool's word for it.
    pub operation: String,
    /// Id of the group's read-write volume.
    pub volume: u32,
    /// The volume's name.
    pub name: String,
    /// The last step that began.
    pub step: String,
    /// Who holds it.
    pub holder: Holder,
    /// Number of the holding.
    pub holding: u64,
    /// Start, in seconds since 1970.
    pub since: u32,
    /// The holder's last sign of life, in seconds since 1970.
    pub heard: u32,
    /// What is needed to resume it.
    pub detail: serde_json::Value,
}

impl Versioned for OperationFile {
    const SYNTAX: Syntax = Syntax::Json;
    const IS_SECRET: bool = true;
    const REMEDY: &'static str =
        "remove it, and compare the databases with the servers by `andrew vos check`";
}

impl OperationFile {
    /// The operation as a journal shows it.
    #[must_use]
    pub fn record(&self, id: u64, lapsed: bool) -> Record {
        Record {
            id: OperationId(id),
            draft: Draft {
                word: self.operation.clone(),
                volume: VolumeId(self.volume),
                name: self.name.clone(),
                holder: self.holder.clone(),
                step: self.step.clone(),
                detail: self.detail.to_string().into(),
            },
            since: UnixSeconds(self.since),
            heard: UnixSeconds(self.heard),
            lapsed,
        }
    }
}

/// Reads a file of any bytes, and the plan in it, for fuzzing; true if both are sound.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn read_any(bytes: &[u8]) -> bool {
    let path = std::path::Path::new("7.json");
    let Ok(file) = OperationFile::decode(path, bytes) else { return false };
    let again = file.encode().ok().and_then(|text| OperationFile::decode(path, text.as_bytes()).ok());
    // Numbers with a point may differ in the last digit.
    assert!(again.is_some_and(|again| again.name == file.name), "a file is not what it encodes to");
    afs_admin::fuzzing::plan(&file.record(7, true).draft.detail)
}
