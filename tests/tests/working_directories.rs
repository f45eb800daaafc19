//! Working directories and mount points stay what they are while another machine changes names beside them: a user with a token, a
//! private volume, root's mounts on two machines, without and with leases; on one of them another user takes turns
//! with that one in the private directories.

use std::path::PathBuf;
use std::process::Command;

use andrew_tests::live::cell::{CELL, command};
use andrew_tests::live::mount::{Mount, wait_for_word};
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::process::{Daemon, run, seconds};
use andrew_tests::live::setup::Setup;
use andrew_tests::live::user::User;
use andrew_tests::live::wait::until_equal;

const UID: u32 = 50_031;
const VISITOR: u32 = 50_032;
/// What the other machine does in the directory above, and the names that are there then.
const CHANGES: [(&str, &[&str]); 5] = [
    ("touch \"$A/file\"", &["file", "inside", "point"]),
    ("mkdir \"$A/other\"", &["file", "inside", "other", "point"]),
    ("mv \"$A/file\" \"$A/name\"", &["inside", "name", "other", "point"]),
    ("rm \"$A/name\"; ln -s x \"$A/other/link\"", &["inside", "other", "point"]),
    ("rm \"$A/other/link\"; rmdir \"$A/other\"", &["inside", "point"]),
];

#[test]
fn another_machines_changes_take_no_working_directory_away_and_nothing_that_is_mounted() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let kinds = [
        ("working_directories", 16, &["--allow-other"][..]),
        ("working_leases", 17, &["--allow-other", "--lease"]),
    ];
    for (name, number, more) in kinds {
        let setup = Setup::new(name, number, seconds(120));
        let cell = setup.up("rl", &[]);
        let user = User::new(setup.netns(), cell.state(), setup.scratch().path(), "worker", UID);
        let visitor = User::new(setup.netns(), cell.state(), setup.scratch().path(), "visitor", VISITOR);
        let volume = cell.mount().join("worker");
        let ours = |words: &[&str]| drop(command(setup.netns(), words));
        ours(&["vos", "--state", cell.state().to_str().unwrap(), "create", "worker"]);
        ours(&["fs", "mkmount", volume.to_str().unwrap(), "worker"]);
        ours(&[
            "fs",
            "setacl",
            volume.to_str().unwrap(),
            "worker",
            "all",
            "visitor",
            "rl",
            "system:anyuser",
            "none",
        ]);
        let (here, there) = (setup.mount("here", more), setup.mount("there", more));
        [&user, &visitor].iter().for_each(|user| user.log_in(CELL, setup.address()));
        Scene::new(&setup, [&user, &visitor], &here, &there).plays();
        drop((here, there));
        cell.stop();
    }
}

struct Scene<'a> {
    user: &'a User<'a>,
    visitor: &'a User<'a>,
    /// The directory above, on the two machines.
    above: PathBuf,
    above_there: PathBuf,
    /// Its working directory is `inside`.
    resident: Daemon,
    _bound: Bound,
}

impl<'a> Scene<'a> {
    fn new(setup: &Setup, [user, visitor]: [&'a User<'a>; 2], here: &Mount, there: &Mount) -> Self {
        let [above, above_there] = [here, there].map(|mount| mount.path().join("worker/above"));
        assert!(user.sh(&above, "mkdir -p \"$A/inside\" \"$A/point\"").status.success());
        let at = |inside: &str| {
            let line = "cd \"$0\" && echo ready && exec sleep infinity";
            let command = user.command("sh", &["-c", line, above.join(inside).to_str().unwrap()]);
            let mut process = Daemon::start(command, &setup.scratch().path().join(format!("{inside}.log")));
            wait_for_word(&mut process, "ready");
            process
        };
        let resident = at("inside");
        let elsewhere = setup.scratch().path().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        std::fs::write(elsewhere.join("mounted"), "").unwrap();
        bind("mount", &["--bind", elsewhere.to_str().unwrap()], &at("point"));
        let bound = Bound(at("point"));
        Self { user, visitor, above, above_there, resident, _bound: bound }
    }

    fn plays(&self) {
        for (change, names) in CHANGES {
            assert!(self.user.sh(&self.above_there, change).status.success(), "{change}");
            until_equal(change, &names.join("\n"), || self.listed());
            self.is_as_before("inside", change);
            self.is_visited(change);
        }
        let moved = "mv \"$A/inside\" \"$A/moved\"";
        assert!(self.user.sh(&self.above_there, moved).status.success());
        until_equal(moved, &"moved\npoint".to_owned(), || self.listed());
        assert!(self.user.sh(&self.above, "test -d \"$A/moved\"").status.success());
        self.is_as_before("moved", moved);
    }

    /// The other user comes by, the volumes are listed, and the other machine changes something while programs look up names here.
    fn is_visited(&self, change: &str) {
        // A look-up of a directory in the last second makes the kernel look up all names again, see docs/semantics.md.
        std::thread::sleep(seconds(1) + seconds(1) / 10);
        let visit = self
            .visitor
            .sh(&self.above, "cd \"$A/inside\" && ls \"$A\" >/dev/null && test -e \"$A/point/mounted\"");
        assert!(visit.status.success(), "{change}: {visit:?}");
        let volumes = self.user.sh(&self.above, "ls -l \"$A/../..\"");
        assert!(String::from_utf8_lossy(&volumes.stdout).contains("worker"), "{volumes:?}");
        self.is_as_before("inside", change);
        let looking = "for n in $(seq 300); do test -e \"$A/none$n\" || test -d \"$A/inside\"; ls \"$A\" >/dev/null; done";
        std::thread::scope(|scope| {
            let looks = scope.spawn(|| self.user.sh(&self.above, looking));
            let changes = "for n in $(seq 40); do touch \"$A/passing\"; rm \"$A/passing\"; done";
            assert!(self.user.sh(&self.above_there, changes).status.success());
            assert!(looks.join().unwrap().status.success());
        });
        self.is_as_before("inside", change);
    }

    fn listed(&self) -> String {
        let listed = self.user.sh(&self.above, "ls \"$A\"");
        String::from_utf8(listed.stdout).unwrap().trim().to_owned()
    }

    fn is_as_before(&self, inside: &str, change: &str) {
        // As getcwd(2) has it: "(deleted)" behind the path of one that has none.
        let now = std::fs::read_link(format!("/proc/{}/cwd", self.resident.pid())).unwrap();
        assert_eq!(now, self.above.join(inside), "{change}");
        let mounted = self.user.sh(&self.above, "test -e \"$A/point/mounted\"");
        assert!(mounted.status.success(), "{change}: it is not mounted any more");
        let removed = self.user.sh(&self.above, "rmdir \"$A/point\"");
        let said = String::from_utf8_lossy(&removed.stderr);
        assert!(said.contains("busy"), "{change}: {said}");
    }
}

/// Runs mount(8) or umount(8) on the working directory of a process: root, who has no right there, needs no look-up of its path.
fn bind(program: &str, words: &[&str], at: &Daemon) {
    let mut command = Command::new(program);
    command.arg("--no-canonicalize").args(words).arg(format!("/proc/{}/cwd", at.pid()));
    run(command, seconds(20));
}

/// What is mounted, with a process that works there.
struct Bound(Daemon);

impl Drop for Bound {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            bind("umount", &["--lazy"], &self.0);
        }
    }
}
