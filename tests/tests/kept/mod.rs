//! What a program was told is kept, is: for each word that tells it, on mounts with passthrough, without, and with leases; seen by a
//! second machine, and after a kill of the mount, of the server, of both. The user has a token, and the volume is private.

use std::path::{Path, PathBuf};

use andrew_tests::live::cell::{CELL, Cell, andrew, command};
use andrew_tests::live::mount::{Mount, wait_for_word};
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::netns::Netns;
use andrew_tests::live::process::{Daemon, run, run_any, seconds};
use andrew_tests::live::setup::Setup;
use andrew_tests::live::user::User;
use andrew_tests::live::wait::until;

/// `fusermount3` mounts for users with an account: every machine has this one.
const NOBODY: u32 = 65534;
/// What another machine sees when the call has returned.
const SEEN: [&str; 12] = [
    "close",
    "fsync",
    "fdatasync",
    "fsync-directory",
    "O_SYNC",
    "O_DSYNC",
    "O_DSYNC-beside",
    "O_SYNC-append",
    "sync",
    "syncfs",
    "O_EXCL",
    "link",
];
/// What another machine sees of these only where the kernel does not write the cache file itself. Where it does, they are on this machine, and
/// the next mount has them set aside.
const OF_REQUESTS: [&str; 2] = ["RWF_DSYNC", "msync"];
/// What nobody else can have.
const TAKEN: [&str; 5] = ["O_EXCL:taken", "link:taken", "NOREPLACE:taken", "flock:taken", "range:taken"];
/// What is there after any kill, on a mount with leases as well.
const DURABLE: [&str; 8] = [
    "fsync",
    "fdatasync",
    "fsync-directory",
    "O_SYNC",
    "O_DSYNC",
    "O_DSYNC-beside",
    "O_SYNC-append",
    "O_EXCL",
];
/// What is also there on a mount without leases.
const DURABLE_WITHOUT_LEASES: [&str; 5] = ["close", "sync", "syncfs", "link", "NOREPLACE"];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Passthrough,
    OfUser,
    Leases,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Killed {
    Mount,
    Server,
    Both,
}

/// A cell with a user and a private volume, and the mount of another machine.
struct Scene<'a> {
    setup: &'a Setup,
    user: User<'a>,
    /// The same user where everybody may mount.
    mounting: User<'a>,
    cell: Option<Cell>,
    there: Option<Mount>,
}

impl<'a> Scene<'a> {
    fn new(setup: &'a Setup, mounting: &'a Netns) -> Self {
        let cell = setup.up("rl", &[]);
        let user = User::new(setup.netns(), cell.state(), setup.scratch().path(), "kept", NOBODY);
        let (state, top) =
            (cell.state().display().to_string(), cell.mount().join("kept").display().to_string());
        let ours = |words: &[&str]| drop(command(setup.netns(), words));
        ours(&["vos", "--state", &state, "create", "kept"]);
        ours(&["fs", "mkmount", &top, "kept"]);
        ours(&["fs", "setacl", &top, "kept", "all", "system:anyuser", "none"]);
        let there = Some(setup.mount("there", &["--allow-other"]));
        let mounting = User::known(mounting, setup.scratch().path(), "kept", NOBODY);
        Self { setup, user, mounting, cell: Some(cell), there }
    }

    fn mount(&self, kind: Kind) -> Mount {
        let mount = match kind {
            Kind::Passthrough => self.setup.mount("through", &["--allow-other"]),
            Kind::Leases => self.setup.mount("leases", &["--allow-other", "--lease"]),
            Kind::OfUser => {
                let name = (0..).map(|n| format!("own{n}")).find(|n| !self.user.home().join(n).exists());
                Mount::of_user(&self.mounting, CELL, self.setup.address(), &name.unwrap())
            }
        };
        self.user.log_in(CELL, self.setup.address());
        mount
    }

    fn restart_server(&mut self) {
        let cell = self.cell.take();
        if let Some(mut cell) = cell {
            cell.kill();
        }
        self.cell = Some(self.setup.up("rl", &[]));
    }

    /// What a machine that has `top` misses.
    fn missing(&self, user: &User<'_>, top: &Path, turn: &str, ways: &[&str]) -> String {
        let (program, top) = (program(), shown(top));
        let words = [&[&*program, "look", &top, turn], ways].concat();
        run(user.command("python3", &words), seconds(120))
    }

    /// A program that writes in all ways, has been told of each, and does not end.
    fn writer(&self, mount: &Mount, turn: &str) -> Daemon {
        let (program, top) = (program(), shown(&mount.path().join("kept")));
        let command = self.mounting.command("python3", &[&program, "write", &top, turn]);
        let mut writer = Daemon::start(command, &self.setup.scratch().path().join(format!("{turn}.log")));
        wait_for_word(&mut writer, "ready");
        writer
    }

    /// Takes what was set aside of these ways, and stores it, as `andrew fs recover` says.
    fn recover(&self, mount: &Mount, turn: &str, ways: &[&str]) {
        for way in ways {
            let path = shown(&mount.path().join("kept").join(format!("{turn}-{way}")));
            let saved = shown(&self.user.home().join(format!("{turn}-{way}")));
            until("the data that was set aside", seconds(60), || {
                let saving = ["fs", "recover", "save", &path, &saved];
                run_any(self.mounting.command(&shown(&andrew()), &saving), seconds(60))
                    .status
                    .success()
                    .then_some(())
            });
            let text = format!("kept by {way} in {turn}\n");
            assert!(std::fs::read(&saved).unwrap().starts_with(text.as_bytes()), "{path}");
            run(self.mounting.command("cp", &[&saved, &path]), seconds(60));
            self.mounting.andrew(&["fs", "recover", "discard", &path]);
        }
        let there = self.there.as_ref().unwrap().path().join("kept");
        assert_eq!(self.missing(&self.user, &there, turn, ways), "", "{turn}: what was stored after all");
    }

    fn turn(&mut self, kind: Kind, killed: Killed) {
        let turn = format!("{kind:?}-{killed:?}");
        let mut mount = self.mount(kind);
        let mut writer = self.writer(&mount, &turn);
        let there = self.there.as_ref().unwrap().path().join("kept");
        let requests = if kind == Kind::OfUser { &OF_REQUESTS[..] } else { &[] };
        let seen = [&SEEN[..], &["NOREPLACE"], requests, &TAKEN].concat();
        assert_eq!(self.missing(&self.user, &there, &turn, &seen), "", "{turn}: another machine");

        // Under leases another one has asked for all of it; what nobody asked for is written once more.
        let again = format!("{turn}-again");
        let mut second = self.writer(&mount, &again);
        if killed != Killed::Server {
            mount.kill();
        }
        if killed != Killed::Mount {
            self.restart_server();
        }
        writer.kill();
        second.kill();
        if killed != Killed::Server {
            drop(mount);
            mount = self.mount(kind);
        }
        if killed != Killed::Server && kind != Kind::OfUser {
            self.recover(&mount, &again, &OF_REQUESTS);
        }
        let rest = if kind == Kind::Leases { &[] } else { &DURABLE_WITHOUT_LEASES[..] };
        let kept = [&DURABLE[..], rest, requests].concat();
        for (user, mount) in [(&self.user, self.there.as_ref().unwrap()), (&self.mounting, &mount)] {
            let top = mount.path().join("kept");
            let missing = self.missing(user, &top, &again, &kept);
            assert_eq!(missing, "", "{turn}: after the kill, {}", top.display());
        }
    }
}

fn program() -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/kept/keep.py").display().to_string()
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// `/dev/fuse` may be opened by every user on an ordinary machine, and by root alone on some: here every user may.
fn everybody_may_mount(setup: &Setup) -> (Option<Daemon>, Netns) {
    let fuse = setup.scratch().path().join("fuse").display().to_string();
    let line = "mknod \"$0\" c 10 229 && chmod 666 \"$0\" && mount --bind \"$0\" /dev/fuse && echo ready && exec sleep infinity";
    let mut command = setup.netns().command("unshare");
    command.args(["--mount", "--propagation", "slave", "sh", "-c", line, &fuse]);
    let mut holder = Daemon::start(command, &setup.scratch().path().join("holder.log"));
    wait_for_word(&mut holder, "ready");
    let netns = setup.netns().with_mounts_of(holder.pid());
    (Some(holder), netns)
}

fn kept_on(name: &'static str, number: u8, kind: Kind) {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let setup = Setup::new(name, number, seconds(600));
    // Namespaces hide later mounts of the machine's: those of root are made in the machine's alone.
    let (_holder, mounting) = match kind {
        Kind::OfUser => everybody_may_mount(&setup),
        _ => (None, setup.netns().alias()),
    };
    let mut scene = Scene::new(&setup, &mounting);
    for killed in [Killed::Mount, Killed::Server, Killed::Both] {
        scene.turn(kind, killed);
    }
    drop(scene.there.take());
    scene.cell.take().unwrap().stop();
}

#[test]
fn all_that_a_mount_with_passthrough_acknowledged() {
    kept_on("kept_passthrough", 13, Kind::Passthrough);
}

#[test]
fn all_that_a_users_mount_acknowledged() {
    kept_on("kept_users", 14, Kind::OfUser);
}

#[test]
fn all_that_a_mount_with_leases_acknowledged() {
    kept_on("kept_leases", 15, Kind::Leases);
}
