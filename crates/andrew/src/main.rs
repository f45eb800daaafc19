//! The `andrew` program; all its code is in the library of this package.

use std::process::ExitCode;

fn main() -> ExitCode {
    andrew::main(std::env::args_os())
}
