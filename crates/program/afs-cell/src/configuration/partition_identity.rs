//! Identity of a partition, as JSON: `partition.json` in its directory. It goes with the disk.

use crate::error::CellResult;
use afs_files::{Syntax, Versioned, VersionedFileError};
use afs_wire::ids::Uuid;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Name of the file.
const FILE: &str = "partition.json";
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct PartitionFile {
    format: u32,
    id: String,
}

impl Versioned for PartitionFile {
    const SYNTAX: Syntax = Syntax::Json;
    const REMEDY: &'static str = "put a good copy back; or remove it, and have its partition taken anew by `andrew store forget PARTITION`";
}

/// Reads the identity of the partition in a directory; `None` if it has none, or there is no directory.
pub(crate) fn read(directory: &Path) -> CellResult<Option<Uuid>> {
    let path = directory.join(FILE);
    PartitionFile::read_file(&path)?.map(|file| id(&path, &file)).transpose()
}

/// Writes it durably.
pub(crate) fn write(directory: &Path, id: Uuid) -> CellResult {
    let file = PartitionFile { format: FORMAT, id: id.to_string() };
    Ok(file.write_file(&directory.join(FILE))?)
}

fn id(path: &Path, file: &PartitionFile) -> CellResult<Uuid> {
    let damaged = |_| VersionedFileError::Damaged {
        path: path.to_owned(),
        why: "it has no such name as partitions have".into(),
        remedy: PartitionFile::REMEDY,
    };
    Ok(file.id.parse().map_err(damaged)?)
}

#[cfg(any(test, feature = "fuzzing"))]
pub(super) fn fuzz(bytes: &[u8]) -> bool {
    let file = PartitionFile::decode(Path::new(FILE), bytes);
    file.is_ok_and(|file| id(Path::new(FILE), &file).is_ok())
}
