//! Directories of a server, a drive and a mount, and another user of the machine. The user can read, lock, replace and plant nothing in
//! them, also if the umask was 0 and an administrator had made the directories with mode 0755 before.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use andrew_tests::live::cell::{CELL, andrew, command};
use andrew_tests::live::intruder;
use andrew_tests::live::mount::wait_for_word;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::process::{Daemon, run_any, seconds};
use andrew_tests::live::scratch::unmount;
use andrew_tests::live::setup::Setup;
use andrew_tests::live::user::User;

const UID: u32 = 50_041;
/// Bytes that only the user may see.
const SECRET: &str = "correct horse battery staple";

/// A host with a server, a partition outside of its state, a drive, and mounts of root's and of a user's, all started with umask 0.
struct Host {
    setup: Setup,
}

/// What runs, and the word by which it says that it does.
#[derive(Clone, Copy, Debug)]
enum What {
    Server,
    Drive,
    RootsMount,
}

impl Host {
    fn new(name: &'static str, number: u8) -> Self {
        let setup = Setup::new(name, number, seconds(240));
        let host = setup.scratch().folder("host");
        let text = format!(
            "cell = \"{CELL}\"\nlisten = \"{}\"\nstate = \"state\"\n[[partition]]\nname = \"a\"\npath = \"disk\"\n",
            setup.address()
        );
        fs::write(host.join("server.toml"), text).unwrap();
        Self { setup }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.setup.scratch().path().join("host").join(name)
    }

    /// The directories that the product keeps.
    fn places(&self) -> Vec<PathBuf> {
        ["state", "disk", "drive", "cache"].map(|name| self.at(name)).into()
    }

    /// A command of the product, in a shell that takes away no rights.
    fn command(&self, what: What) -> Command {
        let mut command = self.setup.netns().command("sh");
        command.args(["-c", "umask 0; exec \"$0\" \"$@\""]).arg(andrew()).current_dir(self.at("."));
        match what {
            What::Server => command.args(["serve", "--config", "server.toml"]),
            What::Drive => command.args(["drive", "serve", "--listen", "127.0.0.1:0", "--dir", "drive"]),
            What::RootsMount => command
                .args([
                    "mount",
                    "--cell",
                    CELL,
                    "--servers",
                    self.setup.address(),
                    "--cache",
                    "cache",
                    "--allow-other",
                ])
                .arg(self.at("afs")),
        };
        command
    }

    fn start(&self, what: What) -> Daemon {
        let log = (0..).map(|n| self.at(&format!("{what:?}{n}.log"))).find(|log| !log.exists()).unwrap();
        let mut process = Daemon::start(self.command(what), &log);
        wait_for_word(
            &mut process,
            match what {
                What::Server => "its state is in",
                What::Drive => "the drive listens at",
                What::RootsMount => "its cache is in",
            },
        );
        process
    }

    fn start_all(&self) -> [Daemon; 3] {
        [What::Server, What::Drive, What::RootsMount].map(|what| self.start(what))
    }

    fn stop_all(&self, processes: [Daemon; 3]) {
        for mut process in processes.into_iter().rev() {
            assert!(process.end(seconds(60)).is_some_and(|status| status.success()), "{}", process.said());
        }
        unmount(&self.at("afs"));
    }

    fn refused(&self, what: What) -> String {
        let output = run_any(self.command(what), seconds(60));
        assert!(!output.status.success(), "{what:?} has started");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// A user with a private volume on the partition, and a file in it that is also in the cache.
    fn keep_a_secret(&self) {
        let (state, netns) = (self.at("state"), self.setup.netns());
        let user = User::new(netns, &state, self.setup.scratch().path(), "owner", UID);
        let state = state.display().to_string();
        let ours = |words: &[&str]| drop(command(netns, &[words, &["--state", &state]].concat()));
        ours(&["vos", "create", "owner"]);
        ours(&["pts", "adduser", "owner", "system:administrators"]);
        user.log_in(CELL, self.setup.address());
        let fs = format!("{} fs", andrew().display());
        let line = format!(
            "{fs} mkmount \"$A/owner\" owner && {fs} setacl \"$A/owner\" owner all system:anyuser none && \
             echo '{SECRET}' >\"$A/owner/secret\" && cat \"$A/owner/secret\""
        );
        let said = user.sh(&self.at("afs"), &line);
        assert!(said.status.success(), "{said:?}");
    }
}

/// All files below some places.
fn files(places: &[PathBuf]) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut open = places.to_vec();
    while let Some(path) = open.pop() {
        let found = fs::symlink_metadata(&path).unwrap();
        if found.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if found.is_file() {
            all.push(path);
        }
    }
    all
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn another_user_of_the_machine_opens_nothing_that_is_kept() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let host = Host::new("second_user", 24);
    // As `/vicepa` is: made before, and open to look at.
    host.places().iter().for_each(|place| fs::create_dir(place).unwrap());
    host.places().iter().for_each(|place| set_mode(place, 0o755));
    let processes = host.start_all();
    host.keep_a_secret();
    let has_secret = |path: &PathBuf| String::from_utf8_lossy(&fs::read(path).unwrap()).contains(SECRET);
    let secret: Vec<PathBuf> = files(&host.places()).into_iter().filter(has_secret).collect();
    let is_in = |place: &str| secret.iter().any(|path| path.starts_with(host.at(place)));
    assert!(is_in("disk") && is_in("cache"), "the secret is nowhere to be found: {secret:?}");
    assert_eq!(intruder::finds(&host.places()), Vec::<String>::new());
    let dump = host.at("owner.dump").display().to_string();
    let state = host.at("state").display().to_string();
    let _ = command(host.setup.netns(), &["vos", "dump", "owner", "-file", &dump, "--state", &state]);
    assert_eq!(fs::metadata(&dump).unwrap().permissions().mode() & 0o777, 0o600);
    host.stop_all(processes);

    // A program of before made all of it for everybody to read.
    let mut own: Vec<PathBuf> = ["disk/index", "disk/drive", "cache/files"].map(|name| host.at(name)).into();
    own.push(host.at("state/db"));
    let opened = files(&own);
    let folders = opened.iter().filter_map(|path| path.parent()).map(|path| (path.to_owned(), 0o755));
    opened
        .iter()
        .map(|path| (path.clone(), 0o644))
        .chain(folders)
        .for_each(|(path, mode)| set_mode(&path, mode));
    own.iter().for_each(|path| set_mode(path, 0o755));
    assert!(intruder::finds(&[host.at("disk")]).len() >= 3, "it can be read now");
    let processes = host.start_all();
    assert_eq!(intruder::finds(&host.places()), Vec::<String>::new());
    assert!(processes[0].said().contains("was open to other users"), "{}", processes[0].said());
    host.stop_all(processes);
}

#[test]
fn a_place_that_another_user_owns_or_may_change_is_refused_with_the_command_that_mends_it() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let host = Host::new("second_owner", 25);
    let processes = host.start_all();
    host.stop_all(processes);
    let server = host.start(What::Server);
    for (place, what) in [("cache", What::RootsMount), ("drive", What::Drive)] {
        refuses(&host, place, what);
    }
    drop(server);
    refuses(&host, "state", What::Server);
    // A server without its partition serves what else it has, and says why.
    for place in ["disk", "disk/index", "disk/drive"] {
        set_mode(&host.at(place), 0o777);
        let mut server = host.start(What::Server);
        let said = server.said();
        server.end(seconds(60));
        assert!(said.contains("chmod go-w") && said.contains(&format!("{place} ")), "{place}: {said}");
        set_mode(&host.at(place), 0o700);
    }
    // The other user's links are there, and nothing of the product follows them.
    let victim = host.at("victim");
    fs::write(&victim, "of somebody else").unwrap();
    for (lock, what) in
        [("cache/lock", What::RootsMount), ("state/lock", What::Server), ("drive/lock", What::Drive)]
    {
        let aside = host.at("aside");
        fs::rename(host.at(lock), &aside).unwrap();
        symlink(&victim, host.at(lock)).unwrap();
        host.refused(what);
        fs::rename(&aside, host.at(lock)).unwrap();
    }
    assert_eq!(fs::read(&victim).unwrap(), b"of somebody else");
}

fn refuses(host: &Host, place: &str, what: What) {
    let path = host.at(place);
    let shown = path.file_name().unwrap().to_str().unwrap();
    set_mode(&path, 0o777);
    let said = host.refused(what);
    assert!(said.contains("chmod go-w") && said.contains(shown), "{said}");
    set_mode(&path, 0o700);
    chown(&path, Some(65_533), None).unwrap();
    let said = host.refused(what);
    assert!(said.contains("chown 0") && said.contains(shown), "{said}");
    chown(&path, Some(0), None).unwrap();
}
