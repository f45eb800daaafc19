//! Configure, make, test: what its maintainers do with it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::live::process::{run, seconds};

/// Builds what was unpacked in `folder` as two jobs at a time. No path gets into what is built: it may be compared
/// with what was built elsewhere.
pub fn build(folder: &Path) {
    // Dates in archives are left out, and the folder's name is a dot in what the compiler says for debuggers.
    let flags = format!("-O1 -g -ffile-prefix-map={}=.", folder.display());
    let mut configure = in_folder(folder, "./configure");
    configure.env("CFLAGS", flags).env("ARFLAGS", "rcD");
    run(configure, BUILD_MAX);
    let mut make = in_folder(folder, "make");
    make.arg("-j2");
    run(make, BUILD_MAX);
}

/// Runs its own tests; they must succeed. Answers what they said.
#[must_use]
pub fn test(folder: &Path) -> String {
    let mut make = in_folder(folder, "make");
    make.arg("test");
    run(make, BUILD_MAX)
}

fn in_folder(folder: &Path, program: &str) -> Command {
    let mut command = Command::new(program);
    // Another make above this one must not count our jobs.
    command.current_dir(folder).env_remove("MAKEFLAGS").env_remove("MFLAGS").env_remove("MAKELEVEL");
    command.env("LC_ALL", "C");
    command
}

const BUILD_MAX: Duration = seconds(150);
