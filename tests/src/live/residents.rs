//! The people of every live cell: a user who has logged in, the private volume of that user, and another user of the machine.
//!
//! A test has a subject of its own; beside it these two live in its cell. Whenever the cell stops, the user finds all that was
//! written, and the other user has seen nothing of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::cell::{andrew, command};
use super::netns::Netns;
use super::process::{run, seconds};
use super::user::User;

/// The name of the user and of the private volume.
pub const RESIDENT: &str = "resident";
/// Ids of the users of one test lie at this number and above, apart from those of tests that run beside it.
const UIDS: u32 = 200_000;
/// What the other user tries on the private volume `$A`.
const FORBIDDEN: [&str; 5] =
    ["cat $A/diary", "ls $A", "stat $A/diary", "ls -d $A/letters/..", "echo x >> $A/diary"];

/// Where the residents of a cell move in.
#[derive(Clone, Copy, Debug)]
pub struct Home<'a> {
    /// State directory of a host with the databases.
    pub state: &'a Path,
    /// The cell.
    pub cell: &'a str,
    /// Its servers, for the login.
    pub servers: &'a str,
    /// Where the private volume is created: server and partition, or nothing.
    pub site: &'a [&'a str],
    /// A mount whose user may do all in its top directory.
    pub top: &'a Path,
}

/// The two users of one cell, at one mount.
#[derive(Debug)]
pub struct Residents {
    netns: Netns,
    folder: PathBuf,
    home: PathBuf,
    uid: u32,
}

impl Residents {
    /// Finds the residents of a cell by what is in `folder`, or lets them move in.
    ///
    /// # Panics
    /// If the cell refuses, or does not have what was written before.
    #[must_use]
    pub fn of(netns: &Netns, folder: &Path, home: &Home<'_>) -> Self {
        let folder = folder.join("residents");
        let is_new = !folder.exists();
        let residents = Self { netns: netns.alias(), uid: uid(), home: home.top.join(RESIDENT), folder };
        if is_new {
            residents.move_in(home);
        }
        residents.check();
        residents
    }

    /// Lets residents move in at a mount of a cell without one of its own. The mount's user is an administrator meanwhile.
    ///
    /// # Panics
    /// As [`Residents::of`].
    #[must_use]
    pub fn of_served(netns: &Netns, folder: &Path, home: &Home<'_>) -> Self {
        let state = home.state.display().to_string();
        let file = folder.join("passphrase-of-admin");
        let written = fs::write(&file, "nobody guesses this one\n");
        let private = written.and_then(|()| fs::set_permissions(&file, fs::Permissions::from_mode(0o600)));
        private.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let secret = ["--passphrase-file", &file.display().to_string()].map(str::to_owned);
        let admin = |words: &[&str]| {
            let mut command = netns.command(andrew());
            command.args(words).env("XDG_STATE_HOME", folder.join("home"));
            run(command, seconds(60))
        };
        let _ = admin(&["passwd", "admin", "--state", &state, &secret[0], &secret[1]]);
        let (cell, servers) = (home.cell, home.servers);
        let _ = admin(&["login", "admin", "--cell", cell, "--servers", servers, &secret[0], &secret[1]]);
        let residents = Self::of(netns, folder, home);
        let _ = admin(&["logout"]);
        residents
    }

    /// The same two at another machine, where the user logs in.
    ///
    /// # Panics
    /// As [`Residents::check`], and if the login is refused.
    #[must_use]
    pub fn at(&self, netns: &Netns, home: &Home<'_>) -> Self {
        let (folder, at) = (self.folder.clone(), home.top.join(RESIDENT));
        let residents = Self { netns: netns.alias(), uid: self.uid, home: at, folder };
        residents.user(RESIDENT, self.uid).log_in(home.cell, home.servers);
        residents.check();
        residents
    }

    /// The user logs in once more.
    pub(super) fn log_in(&self, cell: &str, servers: &str) {
        self.user(RESIDENT, self.uid).log_in(cell, servers);
    }

    fn move_in(&self, home: &Home<'_>) {
        fs::create_dir(&self.folder).unwrap_or_else(|error| panic!("{}: {error}", self.folder.display()));
        fs::set_permissions(&self.folder, fs::Permissions::from_mode(0o755)).unwrap_or_default();
        let user = User::new(&self.netns, home.state, &self.folder, RESIDENT, self.uid);
        let (state, point) = (home.state.to_string_lossy(), self.home.to_string_lossy());
        let andrew = |words: &[&str]| command(&self.netns, words);
        let _ = andrew(&[&["vos", "--state", &state, "create"], home.site, &[RESIDENT]].concat());
        let _ = andrew(&["fs", "mkmount", &point, RESIDENT]);
        let _ = andrew(&["fs", "setacl", &point, RESIDENT, "all", "system:anyuser", "none"]);
        user.log_in(home.cell, home.servers);
        self.resident("mkdir $A/letters && echo 'dear all' > $A/letters/one && : > $A/diary");
        self.write_down(0);
    }

    /// Looks and writes as both users.
    ///
    /// # Panics
    /// If the user misses something, or the other one sees something.
    pub fn check(&self) {
        let lines = self.lines();
        self.resident(&format!("grep -q 'dear all' $A/letters/one && test $(wc -l < $A/diary) -ge {lines}"));
        for line in FORBIDDEN {
            let output = self.user("stranger", self.uid + 1).sh(&self.home, line);
            let seen = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(
                !output.status.success() && seen.is_empty(),
                "another user of the machine: {line}: {seen}"
            );
        }
        // A test may have filled the disk.
        let written = self.user(RESIDENT, self.uid).sh(&self.home, "echo 'another day' >> $A/diary");
        let told = String::from_utf8_lossy(&written.stderr).into_owned();
        assert!(written.status.success() || told.contains("No space left"), "the resident writes: {told}");
        if written.status.success() {
            self.write_down(lines + 1);
        }
    }

    /// Whether a line of the shell in which `$A` is `path` succeeds for the user who has logged in.
    #[must_use]
    pub fn can(&self, path: &Path, line: &str) -> bool {
        self.user(RESIDENT, self.uid).sh(path, line).status.success()
    }

    fn resident(&self, line: &str) {
        let output = self.user(RESIDENT, self.uid).sh(&self.home, line);
        assert!(output.status.success(), "the resident: {line}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn user(&self, name: &str, uid: u32) -> User<'_> {
        User::known(&self.netns, &self.folder, name, uid)
    }

    /// Lines of the diary that were acknowledged.
    fn lines(&self) -> u32 {
        fs::read_to_string(self.folder.join("lines"))
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or_default()
    }

    fn write_down(&self, lines: u32) {
        fs::write(self.folder.join("lines"), lines.to_string())
            .unwrap_or_else(|error| panic!("lines: {error}"));
    }
}

/// A user id of this process of a test alone.
fn uid() -> u32 {
    UIDS + 2 * (std::process::id() % 1_000_000)
}
