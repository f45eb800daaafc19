//! Tests of logging in to a served cell: passphrases, keys, tokens and sessions.
#![allow(clippy::unwrap_used)]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use crate::home;

use home::{Home, free_ports};

/// A served cell in a home directory of its own; stopped at the end of the test, also after a failure.
struct Cell {
    home: Home,
}

impl Cell {
    fn start() -> Self {
        let cell = Self { home: Home::new() };
        cell.done(&format!("serve --base-port {} --detach", free_ports()));
        cell.secret("pass", "correct horse\n");
        cell
    }

    fn run(&self, words: &[&str]) -> Output {
        self.home.command(words).output().unwrap()
    }

    fn done(&self, line: &str) -> String {
        self.home.done(line)
    }

    fn refused(&self, line: &str) -> String {
        let output = self.home.run(line);
        assert!(!output.status.success(), "andrew {line}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn secret(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        self.chmod(name, 0o600);
    }

    fn chmod(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), Permissions::from_mode(mode)).unwrap();
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.home.file(name)
    }

    fn key(&self, name: &str) {
        let seed = [name.len() as u8; 32];
        let pair = ssh_key::private::KeypairData::Ed25519(ssh_key::private::Ed25519Keypair::from_seed(&seed));
        let key = ssh_key::PrivateKey::new(pair, "me@laptop").unwrap();
        key.write_openssh_file(&self.path(name), ssh_key::LineEnding::LF).unwrap();
    }
}

#[test]
fn a_passphrase_is_set_used_changed_and_taken_away() {
    let cell = Cell::start();
    cell.done("passwd admin --passphrase-file pass");
    assert_eq!(cell.done("login admin --passphrase-file pass"), "admin is logged in to andrew.local\n");
    let tokens = cell.done("tokens");
    assert!(
        tokens.starts_with("admin in andrew.local, ends in 25 h, renewable for 7 days, crypt"),
        "{tokens}"
    );
    let file = cell.path(".local/state/andrew/tokens/andrew.local");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    cell.secret("other", "battery staple\n");
    for line in ["login admin --passphrase-file other", "login nobody --passphrase-file pass"] {
        assert!(cell.refused(line).contains("the user does not exist, or the passphrase or key is wrong"));
    }
    cell.done("passwd --passphrase-file other");
    cell.refused("login --passphrase-file pass");
    cell.done("login --passphrase-file other");
    cell.chmod("other", 0o644);
    assert!(cell.refused("login --passphrase-file other").contains("chmod 600"));
    cell.done("passwd --remove admin");
    cell.chmod("other", 0o600);
    cell.refused("login --passphrase-file other");
    assert_eq!(cell.done("logout"), "logged out of andrew.local\n");
    assert_eq!(cell.done("logout"), "there was no token to forget\n");
    assert_eq!(cell.done("tokens"), "no tokens; `andrew login` gets one\n");
}

#[test]
fn ssh_keys_are_added_used_and_removed() {
    let cell = Cell::start();
    cell.key("key");
    cell.done("ssh-keys add key --user admin");
    let listed = cell.done("ssh-keys list --user admin");
    assert!(
        listed.contains("admin has no passphrase and 1 SSH keys") && listed.contains("me@laptop"),
        "{listed}"
    );
    // There is no terminal at which to confirm the host key.
    let host = cell.refused("login --ssh-key key");
    assert!(host.contains("shows the host key SHA256:"), "{host}");
    let fingerprint = host.split(' ').find(|word| word.starts_with("SHA256:")).unwrap().trim_end_matches(',');
    cell.refused(&format!("login --ssh-key key --host-key {fingerprint}x"));
    cell.done(&format!("login --ssh-key key --host-key {fingerprint}"));
    // The host key is known from then on.
    cell.done("login --ssh-key key");
    cell.key("another");
    assert!(cell.refused("login --ssh-key another").contains("none of the SSH keys"));
    cell.done("ssh-keys remove key --user admin");
    assert!(cell.refused("login --ssh-key key").contains("none of the SSH keys"));
}

#[test]
fn a_command_has_a_token_of_its_own() {
    let cell = Cell::start();
    cell.done("passwd admin --passphrase-file pass");
    let shell = |script: &str| {
        cell.run(&[
            "run-with-token",
            "--user",
            "admin",
            "--passphrase-file",
            "pass",
            "--",
            "sh",
            "-c",
            script,
        ])
    };
    let output = shell("echo $ANDREW_SESSION $ANDREW_TOKENS; stat -c %a $ANDREW_TOKENS; exit 7");
    assert_eq!(output.status.code(), Some(7));
    let said = String::from_utf8(output.stdout).unwrap();
    let words: Vec<&str> = said.split_whitespace().collect();
    assert_eq!((words[0].len(), words[2]), (32, "600"), "{said}");
    assert!(!Path::new(words[1]).exists(), "the file goes with the session");
    assert_eq!(cell.done("tokens"), "no tokens; `andrew login` gets one\n");
    // Signals are not blocked in the command.
    assert_eq!(shell("kill -TERM $$").status.code(), Some(128 + 15));
    cell.done("login --passphrase-file pass --token-file job");
    cell.done("run-with-token --token-file job -- true");
    cell.chmod("job", 0o640);
    assert!(cell.refused("run-with-token --token-file job -- true").contains("chmod 600"));
}

#[test]
fn no_stored_or_logged_byte_reveals_a_secret() {
    let cell = Cell::start();
    cell.done("passwd admin --passphrase-file pass");
    cell.done("login admin --passphrase-file pass");
    cell.done("pts createuser alice");
    cell.done("down");
    let state = cell.path(".local/state/andrew");
    let mut keys = vec![b"correct horse".to_vec()];
    for file in ["keys/KeyFileExt", "keys/login"] {
        // The middle of each file is part of a key.
        let bytes = fs::read(state.join(file)).unwrap();
        keys.extend(bytes.chunks_exact(16).skip(2).map(<[u8]>::to_vec));
    }
    for file in files_below(&state) {
        if file.starts_with(state.join("keys")) {
            continue;
        }
        let bytes = fs::read(&file).unwrap();
        let shown = keys.iter().any(|key| bytes.windows(key.len()).any(|window| window == key));
        assert!(!shown, "{} has a secret in it", file.display());
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        let private = file.starts_with(state.join("vicepa")) || file.starts_with(state.join("db"));
        assert!(private || mode & 0o077 == 0, "{} has mode {mode:o}", file.display());
    }
}

const ADMINISTRATORS: &str = "system:administrators";

#[test]
fn a_login_without_a_group_has_none_of_its_rights_until_the_next_login() {
    let cell = Cell::start();
    cell.done("passwd admin --passphrase-file pass");
    let login = |more: &str| cell.done(&format!("login admin --passphrase-file pass {more}"));
    assert_eq!(
        login("--without system:administrators"),
        "admin is logged in to andrew.local, without the rights of system:administrators\n"
    );
    let tokens = cell.done("tokens");
    assert!(tokens.contains(", without the rights of system:administrators, in use by 0 mounts"), "{tokens}");
    let json = cell.done("--json tokens").replace([' ', '\n'], "");
    assert!(json.contains(r#""without":["system:administrators"]"#), "{json}");
    // Also the owner of the cell that runs here does not use them.
    assert!(cell.refused("pts createuser eve").contains("Permission denied"));
    cell.refused("vos create stuff");
    cell.refused("passwd bob --passphrase-file pass");
    assert!(cell.done("pts membership admin").contains(ADMINISTRATORS), "the membership itself stays");
    let said = cell.refused("groups enable system:administrators");
    assert!(said.contains("the login was made without that") && said.contains("log in again"), "{said}");
    login("");
    cell.done("pts createuser eve");
    login("--without system:administrators");
    cell.refused("pts createuser bob");
    cell.done("logout");
    cell.done("pts createuser bob");
}

#[test]
fn groups_are_disabled_and_enabled_in_a_session_and_for_one_command() {
    let cell = Cell::start();
    cell.done("passwd admin --passphrase-file pass");
    cell.done("login admin --passphrase-file pass");
    cell.done("pts creategroup admin:project -owner admin");
    assert_eq!(
        cell.done("groups disable system:administrators admin:project"),
        "admin in andrew.local has the rights of all groups but admin:project, system:administrators\n"
    );
    cell.refused("pts createuser eve");
    cell.done("groups enable system:administrators");
    cell.done("pts createuser eve");
    assert!(cell.done("tokens").contains(", without the rights of admin:project"));
    cell.done("groups enable admin:project");
    assert!(!cell.done("tokens").contains("without"));
    for (line, reason) in [
        (
            "groups disable system:anyuser",
            "membership in system:anyuser cannot be suspended: everybody is in it",
        ),
        ("groups disable system:authuser", "cannot be suspended"),
        ("groups disable admin:nothing", "andrew.local has no group admin:nothing"),
        ("groups disable eve", "andrew.local has no group eve"),
        ("login admin --passphrase-file pass --without admin:nothing", "has no group admin:nothing"),
        ("login admin --kerberos --without admin:project", "cannot be used with"),
    ] {
        assert!(cell.refused(line).contains(reason), "{line}: {}", cell.refused(line));
    }
    let program = env!("CARGO_BIN_EXE_andrew");
    let script = format!(
        "{program} pts createuser zoe && exit 9; {program} tokens; {program} groups enable {ADMINISTRATORS} && exit 9; exit 7"
    );
    let output = cell.run(&["run-with-token", "--without", ADMINISTRATORS, "--", "sh", "-c", &script]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(said.contains("without the rights of system:administrators"), "{said}");
    cell.done("pts createuser zoe");
    cell.done("login admin --passphrase-file pass --token-file job");
    let whole = fs::read(cell.path("job")).unwrap();
    cell.done("run-with-token --token-file job --without admin:project -- true");
    assert_eq!(fs::read(cell.path("job")).unwrap(), whole, "the file's own token has all groups");
    cell.done("login admin --passphrase-file pass --token-file job --without system:administrators");
    let output =
        cell.run(&["run-with-token", "--token-file", "job", "--", program, "pts", "createuser", "ida"]);
    assert!(!output.status.success(), "a token in a file is without the groups, too");
}

fn files_below(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: std::path::PathBuf| if path.is_dir() { files_below(&path) } else { vec![path] };
    entries.flat_map(below).filter(|path| path.is_file()).collect()
}
