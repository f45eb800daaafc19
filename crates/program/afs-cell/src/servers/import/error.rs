//! Errors of an import.

use std::io;
use std::path::PathBuf;

/// Why an import was refused, or was not completed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportError {
    /// The databases are on other hosts.
    #[error("this host keeps no databases; import on one that does")]
    NoDatabases,
    /// The request is invalid.
    #[error(transparent)]
    Request(#[from] serde_json::Error),
    /// A file cannot be read.
    #[error("cannot read {}: {error} (the cell's servers read it, as the user they run as)", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The path is a directory, a pipe or a device.
    #[error("{} is no file; give vldb.DB0 or prdb.DB0", .0.display())]
    NotAFile(PathBuf),
    /// The file is not a database of this kind.
    #[error("{}: {why}", .path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The fault.
        why: String,
    },
    /// Data is lost in the database.
    #[error(
        "{} is damaged in {places} places: {shown}; nothing was imported. Repair the entries there (OpenAFS's `pts rename` or `pts delete`), or take the file of another database server of the cell",
        .path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Number of damages.
        places: u64,
        /// The first damages.
        shown: String,
    },
    /// The cell's own database refuses the change.
    #[error("the database refuses the import: {0}; what is written stays, and the same command continues it")]
    Database(String),
    /// Entries of the cell contradict the files: the first contradictions.
    #[error(
        "{0}; nothing was imported. With --merge what is here stays, with --replace the file is right; a cell to import into is best one that was first started with roles = [\"database\"]"
    )]
    Conflicts(String),
}
