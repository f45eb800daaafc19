//! The `andrew` program. Everything is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    andrew::main(std::env::args_os())
}
