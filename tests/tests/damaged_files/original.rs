//! The original: a cell with a drive on another host, a private volume, pins and unsaved data, as it was at two stops and at a crash.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use andrew_tests::live::process::{run, seconds};
use andrew_tests::live::user::User;

use crate::damaged_files::damage::MARKS;
use crate::damaged_files::site::{ADDRESS, DRIVE_AT, Site, USER, uid};

/// Files of the cell in `vol`, with their contents. The first is in a row, the next in a chunk of the partition, the third at the drive; the
/// others are rows that came later.
pub fn contents(of: Moment) -> Vec<(&'static str, Vec<u8>)> {
    let mut all =
        vec![("small", text("small")), ("middle", noise(100_000, 3)), ("remote", noise(200_000, 5))];
    let later = [(Moment::Stopped, "new"), (Moment::Crashed, "last"), (Moment::Crashed, "after")];
    all.extend(later.iter().filter(|(since, _)| *since <= of).map(|(_, name)| (*name, text(name))));
    all
}

/// What no server took: more than the volume's quota.
pub fn unsaved() -> Vec<u8> {
    noise(2_000_000, 7)
}

fn text(name: &str) -> Vec<u8> {
    [MARKS[0], b": ", name.as_bytes()].concat().repeat(20)
}

fn noise(len: usize, step: usize) -> Vec<u8> {
    (0..len).map(|at| (at * step + at / 251 + at / 65_521) as u8 | 1).collect()
}

/// When a copy was made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Moment {
    /// At the stop before.
    Older,
    /// At a stop.
    Stopped,
    /// At a crash after that.
    Crashed,
}

/// The copies.
#[derive(Debug)]
pub struct Original {
    folder: PathBuf,
}

impl Original {
    /// Makes the cell at a site, which is empty, and copies it into `folder`.
    pub fn make(site: &mut Site, folder: &Path) -> Self {
        let original = Self { folder: folder.to_owned() };
        fs::create_dir_all(site.state()).unwrap();
        let security = site.state().join("security.toml");
        fs::write(&security, SECURITY).unwrap();
        fs::set_permissions(&security, PermissionsExt::from_mode(0o600)).unwrap();
        let (key, at) = (site.start_drive_alone(), site.path().to_owned());
        site.start().unwrap();
        let state = site.state().display().to_string();
        let vice = |words: &[&str]| drop(site.command(&[words, &["--state", &state]].concat()));
        vice(&["drive", "add", "one", "--address", DRIVE_AT, "--join-key", &key]);
        for name in ["vol", "tight", USER] {
            vice(&["vos", "create", ADDRESS, "a", name]);
            let point = site.top(name).display().to_string();
            drop(site.command(&["fs", "mkmount", &point, name]));
            let all = if name == USER { USER } else { "system:anyuser" };
            let rights: &[&str] = if name == USER { &["system:anyuser", "none"] } else { &[] };
            if name == USER {
                drop(User::new(site.netns(), &site.state(), &at, USER, uid()));
            }
            drop(site.command(&[&["fs", "setacl", &point, all, "all"], rights].concat()));
        }
        site.log_in();
        assert!(site.sh(uid(), "echo 'dear diary' > $A/diary").status.success());
        for (name, bytes) in contents(Moment::Older) {
            if name == "remote" {
                vice(&["drive", "use", "one"]);
            }
            fs::write(site.file(name), bytes).unwrap();
        }
        drop(site.command(&["fs", "pin", "--offline", &site.file("middle").display().to_string()]));
        site.stop();
        original.copy(site, Moment::Older);
        Self::second_run(site);
        original.copy(site, Moment::Stopped);
        Self::third_run(site);
        original.copy(site, Moment::Crashed);
        original
    }

    /// Changes every kind of file that changes.
    fn second_run(site: &mut Site) {
        site.start().unwrap();
        let state = site.state().display().to_string();
        let vice = |words: &[&str]| drop(site.command(&[words, &["--state", &state]].concat()));
        vice(&["pts", "createuser", "witness-a"]);
        vice(&["key", "add", "--rxgk"]);
        fs::write(site.file("new"), text("new")).unwrap();
        fs::write(site.file("more-at-the-drive"), noise(100_000, 9)).unwrap();
        vice(&["drive", "use", "local"]);
        drop(site.command(&["fs", "pin", "--offline", &site.file("small").display().to_string()]));
        drop(site.command(&["fs", "setquota", &site.top("tight").display().to_string(), "100"]));
        let mut over_quota = fs::File::create(site.top("tight").join("unsaved")).unwrap();
        over_quota.write_all(&unsaved()).unwrap();
        assert!(over_quota.sync_all().is_err(), "it is over the quota");
        drop(over_quota);
        // All is in the cache.
        for (name, bytes) in contents(Moment::Stopped) {
            assert!(fs::read(site.file(name)).unwrap() == bytes, "{name}");
        }
        site.stop();
    }

    fn third_run(site: &mut Site) {
        site.start().unwrap();
        let state = site.state().display().to_string();
        for name in ["witness-b", "witness-c"] {
            drop(site.command(&["pts", "createuser", name, "--state", &state]));
        }
        for name in ["last", "after"] {
            fs::write(site.file(name), text(name)).unwrap();
        }
        site.kill();
    }

    fn copy(&self, site: &Site, moment: Moment) {
        let to = self.at(moment);
        fs::create_dir_all(&to).unwrap();
        copy(&site.state(), &to.join("state"));
        copy(&site.drive(), &to.join("drive"));
    }

    /// Where a copy is.
    pub fn at(&self, moment: Moment) -> PathBuf {
        self.folder.join(format!("{moment:?}"))
    }

    /// Puts a site into the state of a moment.
    pub fn restore(&self, site: &Site, moment: Moment) {
        for (name, to) in [("state", site.state()), ("drive", site.drive())] {
            let _ = fs::remove_dir_all(&to);
            copy(&self.at(moment).join(name), &to);
        }
    }
}

/// With times, modes and names of one file.
fn copy(from: &Path, to: &Path) {
    let mut command = Command::new("cp");
    command.args(["-a", "--reflink=auto", "--sparse=always"]).arg(from).arg(to);
    run(command, seconds(60));
}

/// Nothing that differs from the defaults in effect.
const SECURITY: &str = "[audit]\nreads = true\n[connections]\nanonymous = true\n";

/// Whether a user may read the diary, in which nothing else is.
pub fn may_read(site: &Site, uid: u32) -> bool {
    let output = site.sh(uid, "cat $A/diary");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() == (text == "dear diary\n"), "{text}");
    output.status.success()
}
