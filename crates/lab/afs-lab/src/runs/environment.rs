//! What a result was obtained on: program, kernel, processor, memory, and the programs of others that took part.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::process::Command;
use std::{fs, thread};

/// Machine and programs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of this program.
    pub version: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Name of the processor.
    pub processor: String,
    /// Processors that this process may use.
    pub cores: u64,
    /// Load average of the last minute when the run began: whether the machine did something else; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_average: Option<String>,
    /// Memory in bytes; 0 if the system does not tell.
    pub memory_bytes: u64,
    /// Versions of other programs that experiments use, and types of the file systems that are compared, by name.
    pub peers: BTreeMap<String, String>,
}

impl Environment {
    /// This machine, and a program of this version.
    #[must_use]
    pub fn of(version: &str) -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let kib =
            field(&read("/proc/meminfo"), "MemTotal").split(' ').next().and_then(|n| n.parse::<u64>().ok());
        Self {
            version: version.to_owned(),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            processor: field(&read("/proc/cpuinfo"), "model name"),
            cores: thread::available_parallelism().map_or(1, |count| count.get() as u64),
            load_average: load_average(),
            memory_bytes: kib.unwrap_or_default() * 1024,
            peers: compiler().map(|version| ("cc".to_owned(), version)).into_iter().collect(),
        }
    }
}

/// Processes that ran or waited for a processor in the last minute, on the mean; `None` if the system does not tell.
#[must_use]
pub fn load_average() -> Option<String> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next().map(str::to_owned)
}

/// Value of the first line `name : value` of a file of /proc.
fn field(text: &str, name: &str) -> String {
    let line = text.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_once(':')).map_or_else(String::new, |(_, value)| value.trim().to_owned())
}

/// The first line that the C compiler says of itself; `None` if there is no compiler.
fn compiler() -> Option<String> {
    let output = Command::new("cc").arg("--version").output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned();
    output.status.success().then_some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_proc_files_are_found() {
        assert_eq!(field("a: 1\nMemTotal:   4 kB\n", "MemTotal"), "4 kB");
        assert_eq!(field("", "MemTotal"), "");
        let here = Environment::of("1.2");
        assert!(here.cores > 0 && here.version == "1.2" && !here.kernel.is_empty());
    }
}
