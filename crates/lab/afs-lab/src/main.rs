//! The program `andrew-lab`: the tables and figures of the papers, beside what is measured here.

mod commands;

use std::process::ExitCode;

/// That of `andrew`, whose client library makes the calls of a load.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().collect();
    andrew::cli::run::<commands::Cli>(&args)
}
