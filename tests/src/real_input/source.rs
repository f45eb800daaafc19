//! Source of a Debian package, downloaded once, without a change to this machine's apt configuration.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::live::needs::target;
use crate::live::process::{run, seconds};

/// The upstream source of `package`, as Debian has it: the path of a tarball below `target`.
///
/// # Panics
/// If it is missing and cannot be downloaded.
#[must_use]
pub fn tarball(package: &str) -> PathBuf {
    let folder = target().join("sources").join(package);
    if let Some(found) = find(&folder) {
        return found;
    }
    fetch(package, &folder);
    find(&folder).unwrap_or_else(|| panic!("{package} has no .orig.tar in {}", folder.display()))
}

/// Unpacks it in a new folder, without the name of its top folder.
pub fn unpack(tarball: &Path, folder: &Path) {
    let _ = fs::create_dir_all(folder);
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(tarball).arg("-C").arg(folder).args(["--strip-components=1", "--no-same-owner"]);
    run(tar, seconds(60));
}

fn find(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(".orig.tar.")))
}

/// Downloads into another folder first, so that an interrupted download is not taken for a complete one.
fn fetch(package: &str, folder: &Path) {
    let work = folder.with_extension("part");
    let _ = fs::remove_dir_all(&work);
    for part in ["lists/partial", "cache/archives/partial", "source"] {
        made(fs::create_dir_all(work.join(part)), &work);
    }
    let list = format!("deb-src http://deb.debian.org/debian {} main\n", release());
    made(fs::write(work.join("sources.list"), list), &work);
    run(apt(&work, &["update", "-qq"]), seconds(120));
    run(apt(&work, &["source", "-qq", "--download-only", package]), seconds(120));
    made(fs::rename(work.join("source"), folder), folder);
    let _ = fs::remove_dir_all(&work);
}

fn made(done: std::io::Result<()>, what: &Path) {
    done.unwrap_or_else(|error| panic!("{}: {error}", what.display()));
}

fn apt(work: &Path, words: &[&str]) -> Command {
    let option = |name: &str, part: &str| format!("{name}={}", work.join(part).display());
    let mut apt = Command::new("apt-get");
    apt.current_dir(work.join("source"));
    for option in [
        option("Dir::Etc::sourcelist", "sources.list"),
        "Dir::Etc::sourceparts=-".to_owned(),
        option("Dir::State::lists", "lists"),
        option("Dir::Cache", "cache"),
        // Without this apt tries to become a user who may not write here.
        format!("APT::Sandbox::User={}", "root"),
    ] {
        apt.args(["-o", &option]);
    }
    apt.args(words);
    apt
}

/// This machine's release of Debian; the stable one on another system.
fn release() -> String {
    let about = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = about.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let is_debian = about.lines().any(|line| line == "ID=debian");
    name.filter(|_| is_debian).unwrap_or("stable").trim_matches('"').to_owned()
}
