//! Build and tests of a program: configure, make, make test.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::live::process::{run, seconds};

/// Builds the source in `folder` with two jobs. The result contains no path, so that it can be compared with one built
/// elsewhere.
pub fn build(folder: &Path) {
    // Archives contain no dates, and the folder's name is a dot in debug information.
    let flags = format!("-O1 -g -ffile-prefix-map={}=.", folder.display());
    let mut configure = in_folder(folder, "./configure");
    configure.env("CFLAGS", flags).env("ARFLAGS", "rcD");
    run(configure, BUILD_MAX);
    let mut make = in_folder(folder, "make");
    make.arg("-j2");
    run(make, BUILD_MAX);
}

/// Runs the program's own tests; they must succeed. Returns their output.
#[must_use]
pub fn test(folder: &Path) -> String {
    let mut make = in_folder(folder, "make");
    make.arg("test");
    run(make, BUILD_MAX)
}

fn in_folder(folder: &Path, program: &str) -> Command {
    let mut command = Command::new(program);
    // The job server of a make that runs this test must not limit these jobs.
    command.current_dir(folder).env_remove("MAKEFLAGS").env_remove("MFLAGS").env_remove("MAKELEVEL");
    command.env("LC_ALL", "C");
    command
}

const BUILD_MAX: Duration = seconds(150);
