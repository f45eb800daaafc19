//! A value of each mount on this machine, as a list.

use crate::error::{CommandError, CommandResult};
use afs_cell::tokens::Mounts;
use afs_venus::Activity;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// A value of one mount.
#[derive(Serialize)]
pub(super) struct OfMount<T> {
    #[serde(serialize_with = "crate::output::path")]
    directory: PathBuf,
    #[serde(flatten)]
    value: T,
}

/// The values of all mounts. As text, the value of a single mount stands alone, as OpenAFS's `fs` prints it.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct OfMounts<T>(Vec<OfMount<T>>);

/// A value of each running mount that this user may ask.
///
/// # Errors
/// There is none.
pub(super) fn of_mounts<T>(value: impl Fn(&Activity) -> T) -> CommandResult<OfMounts<T>> {
    let told = Mounts::running().activities(false);
    let one = |(cell, told): (afs_cell::tokens::CellLocation, Activity)| {
        let directory = cell.mount?.directory;
        Some(OfMount { directory, value: value(&told) })
    };
    let mut all: Vec<OfMount<T>> = told.into_iter().filter_map(one).collect();
    if all.is_empty() {
        return Err(CommandError::failed(
            "fs: no mount runs here that you may ask; `andrew up` or `andrew mount` makes one",
        ));
    }
    all.sort_by(|a, b| a.directory.cmp(&b.directory));
    Ok(OfMounts(all))
}

impl<T: fmt::Display> fmt::Display for OfMounts<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0[..] {
            [single] => single.value.fmt(f),
            all => all.iter().try_for_each(|one| {
                let (directory, text) = (one.directory.display(), one.value.to_string());
                let begin = if text.lines().nth(1).is_some() { '\n' } else { ' ' };
                write!(f, "{directory}:{begin}{text}")
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_single_mount_stands_alone() {
        let one = |directory: &str| OfMount { directory: directory.into(), value: "5 of 9\n" };
        assert_eq!(OfMounts(vec![one("/a")]).to_string(), "5 of 9\n");
        assert_eq!(OfMounts(vec![one("/a"), one("/b")]).to_string(), "/a: 5 of 9\n/b: 5 of 9\n");
        let two = |directory: &str| OfMount { directory: directory.into(), value: "x 1\ny 2\n" };
        assert_eq!(OfMounts(vec![two("/a"), two("/b")]).to_string(), "/a:\nx 1\ny 2\n/b:\nx 1\ny 2\n");
    }
}
