//! A directory for what an experiment writes, which is removed with it.

use crate::error::{Context, LabError};
use std::fs;
use std::path::{Path, PathBuf};

/// The directory.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// A new directory of this process below another one.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn make_in(parent: &Path, name: &str) -> Result<Self, LabError> {
        let path = parent.join(format!("{name}-{}", std::process::id()));
        fs::create_dir(&path).during("make the directory", &path)?;
        let path = path.canonicalize().during("find", &path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
