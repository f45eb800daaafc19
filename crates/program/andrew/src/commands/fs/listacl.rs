//! `andrew fs listacl`: access lists of directories.

use super::access_list::{AccessList, Entry, show_half};
use super::attribute;
use super::paths::Paths;
use crate::error::CommandResult;
use crate::output;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Options of `andrew fs listacl`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew fs listacl\n  andrew fs la ~/afs ~/afs/projects")]
pub struct Args {
    #[command(flatten)]
    paths: Paths,
}

#[derive(Serialize)]
struct Listed {
    #[serde(serialize_with = "crate::output::path")]
    path: PathBuf,
    normal: Vec<Entry>,
    negative: Vec<Entry>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct AccessLists(Vec<Listed>);

impl Args {
    /// Prints the access lists.
    ///
    /// # Errors
    /// The first path without an access list, or whose list may not be read.
    pub fn run(self, json: bool) -> CommandResult {
        let one = |path: PathBuf| {
            let list = AccessList::parse(&attribute::get_text(&path, "afs.acl")?)?;
            Ok(Listed { path, normal: list.normal, negative: list.negative })
        };
        let lists = self.paths.all().into_iter().map(one).collect::<CommandResult<_>>()?;
        output::show(json, &AccessLists(lists));
        Ok(())
    }
}

impl fmt::Display for AccessLists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, listed) in self.0.iter().enumerate() {
            let mut text = String::new();
            show_half(&mut text, "Normal rights", &listed.normal);
            show_half(&mut text, "Negative rights", &listed.negative);
            let gap = if at == 0 { "" } else { "\n" };
            write!(f, "{gap}Access list for {} is\n{text}", listed.path.display())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_both_halves() {
        let entry = |name: &str, rights| Entry { name: name.into(), rights };
        let listed = Listed {
            path: "p".into(),
            normal: vec![entry("system:administrators", 127)],
            negative: vec![entry("bob", 2)],
        };
        assert_eq!(
            AccessLists(vec![listed]).to_string(),
            "Access list for p is\nNormal rights:\n  system:administrators rlidwka\nNegative rights:\n  bob w\n"
        );
    }
}
