//! `andrew fs getfid`: fids of paths.

use super::attribute;
use super::paths::Paths;
use crate::error::{CommandError, CommandResult};
use crate::output;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// Options of `andrew fs getfid`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew fs getfid ~/afs/readme")]
pub struct Args {
    #[command(flatten)]
    paths: Paths,
}

/// A fid in decimal, as in OpenAFS's tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ShownFid {
    pub(super) volume: u32,
    pub(super) vnode: u32,
    pub(super) unique: u32,
}

impl fmt::Display for ShownFid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.volume, self.vnode, self.unique)
    }
}

/// The fid of the object at `path`.
pub(super) fn of(path: &Path) -> CommandResult<ShownFid> {
    let text = attribute::get_text(path, "afs.fid")?;
    parse(&text)
        .ok_or_else(|| CommandError::failed(format!("fs: '{}' has an invalid fid '{text}'", path.display())))
}

/// A fid in decimal, `VOLUME.VNODE.UNIQUE`.
pub(super) fn parse(text: &str) -> Option<ShownFid> {
    let mut parts = text.split('.').map(|part| part.parse().ok());
    let fid = ShownFid { volume: parts.next()??, vnode: parts.next()??, unique: parts.next()?? };
    parts.next().is_none().then_some(fid)
}

#[derive(Serialize)]
struct PathFid {
    #[serde(serialize_with = "crate::output::path")]
    path: PathBuf,
    #[serde(flatten)]
    fid: ShownFid,
    cell: String,
}

#[derive(Serialize)]
#[serde(transparent)]
struct FidList(Vec<PathFid>);

impl Args {
    /// Prints the fids.
    ///
    /// # Errors
    /// The first path that is not in AFS.
    pub fn run(self, json: bool) -> CommandResult {
        let one = |path: PathBuf| {
            Ok(PathFid { fid: of(&path)?, cell: attribute::get_text(&path, "afs.cell")?, path })
        };
        let found = self.paths.all().into_iter().map(one).collect::<CommandResult<_>>()?;
        output::show(json, &FidList(found));
        Ok(())
    }
}

impl fmt::Display for FidList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for PathFid { path, fid, cell } in &self.0 {
            writeln!(f, "File {} ({fid}) located in cell {cell}", path.display())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_numbers_and_nothing_else() {
        assert_eq!(parse("536870913.2.31").unwrap().to_string(), "536870913.2.31");
        for text in ["1.2", "1.2.3.4", "x.2.3", "-1.2.3", "4294967296.2.3"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
