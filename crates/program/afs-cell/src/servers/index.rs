//! Index of a partition or of the databases: opened, or its damage named.

use crate::error::CellResult;
use crate::servers::StartError;
use crate::servers::error::cannot_open;
use afs_kv::{FileMedium, Kv, KvError, OpenError};
use afs_net::System;
use std::path::Path;
use std::sync::Arc;

/// Opens the index in a directory, or makes an empty one.
pub(super) fn index(system: &Arc<System>, directory: &Path, tables: &[&'static str]) -> CellResult<Kv> {
    let medium = FileMedium::open(directory).map_err(|e| cannot_open(directory, e))?;
    let kv = Kv::open(Arc::new(medium), tables, system.env(), afs_kv::Config::default());
    Ok(kv.map_err(|error| {
        let path = directory.to_owned();
        match error {
            OpenError::NotAStore => StartError::DamagedStore { path, what: "index is no index".to_owned() },
            OpenError::Kv(KvError::Corrupt(what)) => StartError::DamagedStore { path, what },
            error if error.is_damage() => StartError::DamagedStore { path, what: error.to_string() },
            error => cannot_open(directory, error),
        }
    })?)
}
