//! The `andrew` program and its allocator; all its code is in the library of this package.

use std::process::ExitCode;

/// Creations of small files allocate often and free on other threads (`docs/decisions/2026-11-26-allocator.md`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    andrew::main(std::env::args_os())
}
