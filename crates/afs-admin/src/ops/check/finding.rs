//! What a check finds.

use std::net::Ipv4Addr;

use afs_wire::ids::VolumeId;

use crate::Place;

/// Which way the check goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Half {
    /// Both.
    #[default]
    Both,
    /// What servers have is to be in the location database: OpenAFS's `syncvldb`.
    Volumes,
    /// What the location database names is to be on the servers: OpenAFS's `syncserv`.
    Entries,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// Servers that did not answer: what is there was left alone.
    pub silent: Vec<Silent>,
    /// Servers that were to be asked.
    pub servers: usize,
    /// Volumes that they showed.
    pub volumes: u64,
    /// Whether there was more than one check looks at; the next one, after a repair, goes on.
    pub more: bool,
}

impl Checked {
    /// Whether nothing is wrong, or nothing any more, as far as servers answered.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        !self.more && self.silent.is_empty() && self.findings.iter().all(|f| f.remedy == Remedy::Mended)
    }
}

/// A server that did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silent {
    /// Its address.
    pub server: Ipv4Addr,
    /// Why, for a person.
    pub why: String,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The volume.
    pub volume: VolumeId,
    /// Its name, as far as it is known.
    pub name: String,
    /// Where; `None` if it is the entry alone.
    pub place: Option<Place>,
    /// What kind of thing is wrong.
    pub fault: Fault,
    /// The same for a person.
    pub says: String,
    /// What is done about it.
    pub remedy: Remedy,
}

/// Kinds of what can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A volume is on a server, and no entry has it.
    NoEntry,
    /// The entry has another place for a volume.
    Elsewhere,
    /// The entry has a volume that is not there.
    Missing,
    /// Two servers have the read-write volume.
    TwoReadWrite,
    /// The names differ.
    Name,
    /// The volume is of another kind than the entry says.
    Kind,
    /// The entry has another number, or none.
    Number,
    /// The entry does not say that a volume exists, which does, or the other way.
    Flag,
    /// The entry is locked, and the journal knows of no operation.
    Lock,
    /// A temporary clone whose operation is gone.
    Leftover,
    /// Its server cannot attach it.
    Damaged,
    /// New volumes would get numbers that are in use.
    Counter,
}

impl Fault {
    /// As one word, for programs.
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
    /// It was mended.
    Mended,
    /// It should have been mended; why it was not.
    Failed(String),
    /// A person decides; what he may run.
    Person(String),
}

/// The counter of volume numbers is behind.
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
