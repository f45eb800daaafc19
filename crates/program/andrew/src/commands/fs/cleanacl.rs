//! `andrew fs cleanacl`: removes access list entries without a name.

use super::access_list::AccessList;
use super::attribute;
use super::paths::Paths;
use crate::error::CommandResult;
use crate::output;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Options of `andrew fs cleanacl`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew fs cleanacl ~/afs/projects")]
pub struct Args {
    #[command(flatten)]
    paths: Paths,
}

#[derive(Serialize)]
struct Cleaned {
    #[serde(serialize_with = "crate::output::path")]
    path: PathBuf,
    dropped: usize,
}

#[derive(Serialize)]
#[serde(transparent)]
struct CleanedLists(Vec<Cleaned>);

impl Args {
    /// Removes entries that are shown as numbers: ids without a name.
    ///
    /// # Errors
    /// The first directory whose list may not be read or changed.
    pub fn run(self, json: bool) -> CommandResult {
        let cleaned = self.paths.all().into_iter().map(clean).collect::<CommandResult<_>>()?;
        output::show(json, &CleanedLists(cleaned));
        Ok(())
    }
}

fn clean(path: PathBuf) -> CommandResult<Cleaned> {
    let before = AccessList::parse(&attribute::get_text(&path, "afs.acl")?)?;
    let list = before.without_numbers();
    let entries = |list: &AccessList| list.normal.len() + list.negative.len();
    let dropped = entries(&before) - entries(&list);
    if dropped > 0 {
        attribute::set(&path, "afs.acl", list.to_string().as_bytes())?;
    }
    Ok(Cleaned { path, dropped })
}

impl fmt::Display for CleanedLists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Cleaned { path, dropped } in &self.0 {
            match dropped {
                0 => writeln!(f, "Access list for {} is fine.", path.display())?,
                n => writeln!(f, "Access list for {} lost {n} entries without a name.", path.display())?,
            }
        }
        Ok(())
    }
}
