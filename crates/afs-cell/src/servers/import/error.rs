//! Errors of an import.

use std::io;
use std::path::PathBuf;

/// Why an import was refused, or was not completed.
#[derive(Debug, thiserror::Error)]
pub(in crate::servers) enum ImportError {
    /// The databases are on other hosts.
    #[error("this host keeps no databases; import on one that does")]
    NoDatabases,
    /// The request is not one.
    #[error(transparent)]
    Request(#[from] serde_json::Error),
    /// A file cannot be read.
    #[error("cannot read {}: {error} (the cell's servers read it, as the user they run as)", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A directory, a pipe or a device.
    #[error("{} is no file; give vldb.DB0 or prdb.DB0", .0.display())]
    NotAFile(PathBuf),
    /// A file that is no such database.
    #[error("{}: {why}", .path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A database in which something is lost.
    #[error(
        "{} is damaged in {places} places: {shown}; nothing was imported. Mend the entries there (OpenAFS's `pts rename` or `pts delete`), or take the file of another database server of the cell",
        .path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How many damages.
        places: u64,
        /// The first of them.
        shown: String,
    },
    /// The cell's own database refuses.
    #[error(
        "the database does not take it: {0}; what is written stays, and the same command goes on with it"
    )]
    Database(String),
    /// What the cell has contradicts the files: the first contradictions.
    #[error(
        "{0}; nothing was imported. With --merge what is here stays, with --replace the file is right; a cell to import into is best one that was first started with roles = [\"database\"]"
    )]
    Conflicts(String),
}
