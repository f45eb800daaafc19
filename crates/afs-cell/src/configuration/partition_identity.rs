//! Identity of a partition, as JSON: `partition.json` in its directory. It goes with the disk.

use crate::configuration::FileError;
use crate::error::CellResult;
use afs_files::write_durably;
use afs_wire::ids::Uuid;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::Path;

/// Name of the file.
const FILE: &str = "partition.json";
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct PartitionFile {
    format: u32,
    id: String,
}

/// Reads the identity of the partition in a directory; `None` if it has none, or there is no directory.
pub(crate) fn read(directory: &Path) -> CellResult<Option<Uuid>> {
    let path = directory.join(FILE);
    match fs::read(&path) {
        Ok(text) => parse(&path, &text).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FileError::Read { path, error }.into()),
    }
}

/// Writes it durably.
pub(crate) fn write(directory: &Path, id: Uuid) -> CellResult {
    let cannot = |error| FileError::Write { path: directory.join(FILE), error };
    let file = PartitionFile { format: FORMAT, id: id.to_string() };
    let text = serde_json::to_vec_pretty(&file).map_err(|e| cannot(e.into()))?;
    write_durably(directory, FILE, &text).map_err(|e| cannot(e).into())
}

fn parse(path: &Path, text: &[u8]) -> CellResult<Uuid> {
    let damaged = |why| FileError::Damaged { path: path.to_owned(), why };
    let written: PartitionFile = serde_json::from_slice(text).map_err(|e| damaged(e.to_string()))?;
    if written.format != FORMAT {
        let (path, format) = (path.to_owned(), written.format);
        return Err(FileError::Format { path, format, known: FORMAT }.into());
    }
    written.id.parse().map_err(|_| damaged("no such name of a partition".into()).into())
}

#[cfg(any(test, feature = "fuzzing"))]
pub(super) fn fuzz(bytes: &[u8]) -> bool {
    parse(Path::new(FILE), bytes).is_ok()
}
