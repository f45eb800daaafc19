//! Path arguments of `andrew fs`.

use crate::error::{CommandError, CommandResult};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Paths, as positional arguments or with `-path`.
#[derive(clap::Args, Debug)]
pub(super) struct Paths {
    /// Files or directories [default: the current directory]
    #[arg(value_name = "PATH")]
    bare: Vec<PathBuf>,
    /// The same, as OpenAFS's fs takes them
    #[arg(long = "path", value_name = "PATH", num_args = 1.., conflicts_with = "bare", hide_short_help = true)]
    named: Vec<PathBuf>,
}

impl Paths {
    /// The paths in the order given; the current directory if none is given.
    pub(super) fn all(self) -> Vec<PathBuf> {
        let given = if self.bare.is_empty() { self.named } else { self.bare };
        if given.is_empty() { vec![PathBuf::from(".")] } else { given }
    }
}

/// Splits a path into the directory and the last name.
///
/// # Errors
/// The path has no last name (`/`, `..`).
pub(super) fn parent_and_name(path: &Path) -> CommandResult<(PathBuf, OsString)> {
    let wrong = || {
        let shown = path.display();
        CommandError::usage(format!(
            "fs: '{shown}' does not end in a name; give the path of the mount point itself"
        ))
    };
    let name = path.file_name().ok_or_else(wrong)?;
    let parent = path.parent().filter(|p| *p != OsStr::new("")).unwrap_or(Path::new("."));
    Ok((parent.to_owned(), name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_paths() {
        let split = |p: &str| parent_and_name(Path::new(p)).map(|(a, b)| (a.to_owned(), b)).ok();
        assert_eq!(split("a"), Some((".".into(), "a".into())));
        assert_eq!(split("/x/a/"), Some(("/x".into(), "a".into())));
        assert_eq!(split("/"), None);
        assert_eq!(
            parent_and_name(Path::new("..")).unwrap_err().message,
            "fs: '..' does not end in a name; give the path of the mount point itself"
        );
    }
}
