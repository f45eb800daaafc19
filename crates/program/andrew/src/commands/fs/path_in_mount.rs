//! Resolution of a path up to the mount that it leads into, without accessing anything in the mount: its servers may not reply.

use super::attribute;
use crate::error::CommandResult;
use afs_cell::mounts::{self, Mount};
use rustix::io::Errno;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// Limit of links followed.
const LINKS_MAX: u32 = 40;

/// The mount that a path leads into, and the rest of the path from its root.
///
/// # Errors
/// The path leads into no mount of Andrew's.
pub(super) fn split(path: &Path) -> CommandResult<(Mount, Vec<u8>)> {
    let mounts = mounts::list()?;
    let found =
        find(&mounts::absolute(path)?, |at| mounts.iter().rev().find(|mount| mount.directory == at).cloned());
    found.ok_or_else(|| attribute::explain(path, Errno::NOTSUP))
}

/// Follows names and links from `/` until `mount` finds a mount.
fn find(path: &Path, mount: impl Fn(&Path) -> Option<Mount>) -> Option<(Mount, Vec<u8>)> {
    let mut at = PathBuf::from("/");
    let (mut rest, mut links) = (components(path), 0);
    loop {
        // Before it is looked at.
        if let Some(found) = mount(&at) {
            rest.reverse();
            let names: Vec<Vec<u8>> = rest.into_iter().map(OsString::into_vec).collect();
            return Some((found, names.join(&b'/')));
        }
        let name = rest.pop()?;
        if name == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&name);
        if mount(&next).is_none()
            && let Ok(link) = std::fs::read_link(&next)
        {
            links += 1;
            if links > LINKS_MAX {
                return None;
            }
            if link.is_absolute() {
                at = PathBuf::from("/");
            }
            rest.extend(components(&link));
            continue;
        }
        at = next;
    }
}

/// Names of a path, the last one first.
fn components(path: &Path) -> Vec<OsString> {
    let name = |part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    let mut names: Vec<OsString> = path.components().filter_map(name).collect();
    names.reverse();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_up_to_the_mount_and_nothing_in_it_is_looked_at() {
        let scratch = tempfile::tempdir().unwrap();
        let top = scratch.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("mounts/afs")).unwrap();
        std::os::unix::fs::symlink("mounts/../mounts/afs", top.join("work")).unwrap();
        std::os::unix::fs::symlink(top.join("work"), top.join("again")).unwrap();
        std::os::unix::fs::symlink("loop", top.join("loop")).unwrap();
        let mounted =
            Mount { directory: top.join("mounts/afs"), source: "cell".into(), device: "0:9".into() };
        let find = |path: &str| {
            let is_it = |at: &Path| (at == mounted.directory).then(|| mounted.clone());
            find(&top.join(path), is_it).map(|(_, rest)| String::from_utf8(rest).unwrap())
        };
        assert_eq!(find("mounts/afs").as_deref(), Some(""));
        assert_eq!(find("work/no such/../file").as_deref(), Some("no such/../file"));
        assert_eq!(find("again/a/b").as_deref(), Some("a/b"));
        assert_eq!(find("mounts/other/../afs/x").as_deref(), Some("x"));
        assert_eq!(find("mounts"), None);
        assert_eq!(find("loop/a"), None);
    }
}
