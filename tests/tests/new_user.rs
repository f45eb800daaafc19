//! A new user's first hour, as a script: by root, and by an ordinary user with `fusermount3`.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use andrew_tests::live::cell::andrew;
use andrew_tests::live::needs::{Need, all_there, root};
use andrew_tests::live::process::{run, seconds};

/// `$1` is the script, `$2` the program. The shell stays, to reap the processes whose parents have ended.
const AS_ROOT: &str = "ip link set lo up && \"$1\" \"$2\"; exit $?";

/// `/dev/fuse` may be opened by every user on an ordinary machine, and by root alone on some: here every user may.
const AS_NOBODY: &str = "ip link set lo up && mknod \"$3/fuse\" c 10 229 && chmod 666 \"$3/fuse\" \
    && mount --bind \"$3/fuse\" /dev/fuse && cd / \
    && setpriv --reuid=65534 --regid=65534 --clear-groups -- \"$1\" \"$2\"; exit $?";

#[test]
fn root_has_a_cell_from_one_command() {
    runs("smoke", "new-user-root", AS_ROOT);
}

#[test]
fn an_ordinary_user_has_a_cell_from_one_command() {
    runs("smoke", "new-user-nobody", AS_NOBODY);
}

#[test]
fn root_is_told_the_cause_and_the_remedy() {
    runs("troubles", "troubles-root", AS_ROOT);
}

#[test]
fn an_ordinary_user_is_told_the_cause_and_the_remedy() {
    runs("troubles", "troubles-nobody", AS_NOBODY);
}

/// Each command of README's code blocks that needs one machine only, as the users named there.
#[test]
fn the_start_of_readme_works_word_for_word() {
    if !all_there(&[Need::Root, Need::Fuse, Need::Compiler]) {
        return;
    }
    let folder = ReadableFolder::new("readme");
    let mut command = apart("\"$@\"; exit $?");
    command.arg(root().join("crates/program/andrew/scripts/readme"));
    command.args([root().join("README.md"), root().join("Makefile"), andrew()]).arg(&folder.0);
    let said = run(command, seconds(400));
    assert!(said.trim_end().ends_with("all good"), "{said}");
    assert_eq!(left_by(&folder.0), Vec::<String>::new());
}

/// A shell line in separate namespaces: ports and mounts cannot conflict with others, and no process outlives the line.
fn apart(line: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "--propagation", "private"]);
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", line, "sh"]);
    command
}

/// Processes whose arguments or environment have the folder's path.
fn left_by(folder: &Path) -> Vec<String> {
    let path = folder.as_os_str().as_encoded_bytes();
    let names = |bytes: &[u8]| bytes.windows(path.len()).any(|part| part == path);
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let of = |process: PathBuf| {
        let arguments = fs::read(process.join("cmdline")).ok()?;
        let environment = fs::read(process.join("environ")).ok()?;
        let line = String::from_utf8_lossy(&arguments).replace('\0', " ");
        (names(&arguments) || names(&environment)).then(|| format!("{}: {line}", process.display()))
    };
    processes.filter_map(of).collect()
}

fn runs(script: &str, name: &str, how: &str) {
    if !all_there(&[Need::Root, Need::Fuse, Need::Compiler]) {
        return;
    }
    let folder = ReadableFolder::new(name);
    let script = folder.copy(&root().join("crates/program/andrew/scripts").join(script));
    let lab = andrew().with_file_name("andrew-lab");
    let andrew = folder.copy(&andrew());
    if lab.exists() {
        folder.copy(&lab);
    }
    let mut command = apart(how);
    command.arg(script).arg(andrew).arg(&folder.0);
    let said = run(command, seconds(300));
    assert!(said.trim_end().ends_with("all good"), "{said}");
    assert_eq!(left_by(&folder.0), Vec::<String>::new());
}

/// A folder that every user can read, wherever the project itself is.
struct ReadableFolder(PathBuf);

impl ReadableFolder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("andrew-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }

    fn copy(&self, file: &Path) -> PathBuf {
        let copy = self.0.join(file.file_name().unwrap());
        fs::copy(file, &copy).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        copy
    }
}

impl Drop for ReadableFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
