//! `andrew fs copyacl`: copies an access list to other directories.

use super::access_list::{AccessList, Change};
use super::attribute;
use crate::error::{CommandError, CommandResult};
use std::path::PathBuf;

/// Options of `andrew fs copyacl`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  andrew fs copyacl ~/afs/a ~/afs/b ~/afs/c\n  andrew fs copyacl --clear a b"
)]
pub struct Args {
    /// The directory to copy from, then those to copy to
    #[arg(value_name = "DIR")]
    bare: Vec<PathBuf>,
    /// The directory to copy from, as OpenAFS's fs takes it
    #[arg(long, value_name = "DIR")]
    fromdir: Option<PathBuf>,
    /// The directories to copy to, as OpenAFS's fs takes them
    #[arg(long, value_name = "DIR", num_args = 1..)]
    todir: Vec<PathBuf>,
    /// Remove the existing entries first
    #[arg(long)]
    clear: bool,
}

impl Args {
    /// Copies the entries.
    ///
    /// # Errors
    /// A directory whose list may not be read or changed.
    pub fn run(self) -> CommandResult {
        let mut bare = self.bare.into_iter();
        let from = self.fromdir.or_else(|| bare.next());
        let to: Vec<PathBuf> = self.todir.into_iter().chain(bare).collect();
        let (Some(from), false) = (from, to.is_empty()) else {
            return Err(CommandError::usage(
                "fs: copyacl needs a directory to copy from and one to copy to; see `andrew fs copyacl --help`",
            ));
        };
        let source = AccessList::parse(&attribute::get_text(&from, "afs.acl")?)?;
        for directory in to {
            let mut list = AccessList::default();
            if !self.clear {
                list = AccessList::parse(&attribute::get_text(&directory, "afs.acl")?)?;
            }
            for (entries, negative) in [(&source.normal, false), (&source.negative, true)] {
                for entry in entries {
                    list.change(&entry.name, Change::Set(entry.rights), negative)?;
                }
            }
            list.store(&directory).map_err(|error| attribute::explain(&directory, error))?;
        }
        Ok(())
    }
}
