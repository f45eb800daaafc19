//! Findings of a check.

use std::net::Ipv4Addr;

use afs_wire::ids::VolumeId;

use crate::ServerPartition;
use crate::ops::IllPartition;

/// Direction of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckDirection {
    /// Both.
    #[default]
    Both,
    /// Volumes on servers should be in the location database: OpenAFS's `syncvldb`.
    Volumes,
    /// Volumes in the location database should be on the servers: OpenAFS's `syncserv`.
    Entries,
}

/// Volumes that the administrator knows to be lost where they are nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// Those with these names or ids.
    Named(Vec<String>),
    /// All, as OpenAFS's `syncserv` has it.
    All,
}

impl Default for GivenUp {
    fn default() -> Self {
        Self::Named(Vec::new())
    }
}

/// Result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckResult {
    /// The inconsistencies found.
    pub findings: Vec<Finding>,
    /// Servers that did not reply: their volumes were left alone.
    pub silent: Vec<SilentServer>,
    /// Partitions that are off line, whose volumes were left alone, or that fail.
    pub partitions: Vec<IllPartition>,
    /// Number of servers to be asked.
    pub servers: usize,
    /// Number of volumes that they have.
    pub volumes: u64,
    /// Whether there was more than one check examines; the next one, after a repair, continues.
    pub more: bool,
}

impl CheckResult {
    /// Whether there are no findings left, as far as servers replied.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        !self.more
            && self.silent.is_empty()
            && self.partitions.is_empty()
            && self.findings.iter().all(|f| f.remedy == Remedy::Mended)
    }
}

/// A server that did not reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SilentServer {
    /// Its address.
    pub server: Ipv4Addr,
    /// The error, for display.
    pub why: String,
}

/// An inconsistency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The volume.
    pub volume: VolumeId,
    /// Its name, as far as it is known.
    pub name: String,
    /// Its site; `None` if only the entry is concerned.
    pub place: Option<ServerPartition>,
    /// The kind of fault.
    pub fault: Fault,
    /// Description, for display.
    pub says: String,
    /// What is done about it.
    pub remedy: Remedy,
}

/// Kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A volume is on a server, and no entry has it.
    NoEntry,
    /// The entry has another site for a volume.
    Elsewhere,
    /// The entry has a volume that does not exist.
    Missing,
    /// Two servers have the read-write volume.
    TwoReadWrite,
    /// The names differ.
    Name,
    /// The volume is of another kind than the entry says.
    Kind,
    /// The entry has another id, or none.
    Number,
    /// The entry's flag for a volume does not match its existence.
    Flag,
    /// The entry is locked without an operation in the journal.
    Lock,
    /// A temporary clone whose operation is gone.
    Leftover,
    /// Its server cannot attach it.
    Damaged,
    /// New volumes would get ids that are in use.
    Counter,
}

impl Fault {
    /// Its word for programs.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::NoEntry => "no-entry",
            Self::Elsewhere => "elsewhere",
            Self::Missing => "missing",
            Self::TwoReadWrite => "two-read-write",
            Self::Name => "name",
            Self::Kind => "kind",
            Self::Number => "number",
            Self::Flag => "flag",
            Self::Lock => "lock",
            Self::Leftover => "leftover",
            Self::Damaged => "damaged",
            Self::Counter => "counter",
        }
    }
}

/// What is done about a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// A repair changes the entry.
    Repair,
    /// It was repaired.
    Mended,
    /// The repair failed; the error.
    Failed(String),
    /// The administrator decides; a command to run.
    Person(String),
}

/// The counter of volume ids is behind.
pub(super) fn counter(largest: VolumeId, next: VolumeId) -> Finding {
    Finding {
        volume: largest,
        name: String::new(),
        place: None,
        fault: Fault::Counter,
        says: format!("there is a volume {largest}, and the next new one would get the number {next}"),
        remedy: Remedy::Repair,
    }
}
