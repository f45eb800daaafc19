//! Files of a volume, stored by calls.

use crate::load::{LoadError, Target, put};
use afs_wire::fs::{CreateFile, Name, SetStatus};
use afs_wire::ids::{Fid, Mode};

/// Bytes of a file.
pub(super) const FILE_BYTES: u64 = 1_000_000;

/// Creates files of [`FILE_BYTES`] in the target's directory.
pub(super) async fn fill(target: &Target, files: u32) -> Result<Vec<Fid>, LoadError> {
    let mut all = Vec::new();
    for number in 0..files {
        let fid = create(target, &format!("file-{number}")).await?;
        put(target, fid, FILE_BYTES).await?;
        all.push(fid);
    }
    Ok(all)
}

/// Creates an empty file.
pub(super) async fn create(target: &Target, name: &str) -> Result<Fid, LoadError> {
    let status = SetStatus { mode: Some(Mode(0o644)), ..SetStatus::default() };
    let name = Name::truncated(name.as_bytes());
    Ok(target.call(&CreateFile { dir: target.directory, name, status }).await?.fid)
}
