//! Setup of a test on an Andrew cell: a folder, an address, and a watchdog.

use std::path::Path;
use std::time::Duration;

use super::cell::{CELL, Cell, CellOptions};
use super::loopback::own_address;
use super::mount::Mount;
use super::netns::Netns;
use super::scratch::{Scratch, unmount_below};
use super::watchdog::Watchdog;

/// The setup of one test. Cells and mounts in it must be dropped before.
#[derive(Debug)]
pub struct Setup {
    _watchdog: Watchdog,
    netns: Netns,
    address: String,
    scratch: Scratch,
}

impl Setup {
    /// For the test with that name, the `number`th of its program, which must end within `limit`.
    #[must_use]
    pub fn new(name: &'static str, number: u8, limit: Duration) -> Self {
        let scratch = Scratch::new(name);
        let folder = scratch.path().to_owned();
        let watchdog = Watchdog::new(name, limit, move || clear(&folder));
        let address = own_address(number).to_string();
        Self { _watchdog: watchdog, netns: Netns::machine(), address, scratch }
    }

    /// Address of its cell.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its folder.
    #[must_use]
    pub fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// Namespace of its commands.
    #[must_use]
    pub fn netns(&self) -> &Netns {
        &self.netns
    }

    /// Runs `andrew up`, with these rights for `system:anyuser` and further arguments.
    #[must_use]
    pub fn up(&self, anyuser: &str, more: &[&str]) -> Cell {
        Cell::up(&self.netns, self.scratch.path(), &self.options(anyuser, more))
    }

    /// Runs `andrew serve`, with its state in a folder.
    #[must_use]
    pub fn serve_in(&self, folder: &Path, anyuser: &str) -> Cell {
        Cell::serve(&self.netns, folder, &self.options(anyuser, &[]))
    }

    /// Runs `andrew mount` on the folder with that name, anonymously.
    #[must_use]
    pub fn mount(&self, name: &str, more: &[&str]) -> Mount {
        Mount::new(&self.netns, CELL, &self.address, self.scratch.path(), name, more)
    }

    fn options(&self, anyuser: &str, more: &[&str]) -> CellOptions {
        let mut options = CellOptions::at(&self.address, anyuser);
        options.more = more.iter().map(|word| (*word).to_owned()).collect();
        options
    }
}

/// Kills every program that has the folder's path among its arguments, and unmounts all mounts below.
pub fn clear(folder: &Path) {
    let name = folder.to_string_lossy().into_owned();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    for pid in numbers.filter(|pid| *pid != std::process::id()) {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&words).split('\0').any(|word| word.starts_with(&name)) {
            let _ = std::process::Command::new("kill").args(["-9", &pid.to_string()]).output();
        }
    }
    unmount_below(folder);
}
