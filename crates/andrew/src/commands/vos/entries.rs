//! Entries of the location database: found by name or number, and shown.

use super::reach::Target;
use crate::error::{CommandError, CommandResult};
use afs_wire::error::AbortCode;
use afs_wire::ids::{KindNumber, PartitionId, VolumeId, VolumeKind};
use afs_wire::vl::{Entry, EntryFlags, GetEntryByIdN, GetEntryByNameN, NameText, SiteFlags};
use serde::Serialize;
use std::fmt::{self, Write};
use std::net::Ipv4Addr;

/// Any kind, in look-ups by number.
const ANY_KIND: KindNumber = KindNumber(-1);

/// The entry of a volume named or numbered, or `None` if there is none.
pub(super) fn look_up(target: &mut Target, volume: &str) -> CommandResult<Option<Entry>> {
    let found = match volume.parse::<u32>() {
        Ok(id) => target.locate(&GetEntryByIdN { volume: VolumeId(id), kind: ANY_KIND }),
        Err(_) => {
            let name = NameText::new(volume.as_bytes()).map_err(|_| bad_name(volume))?;
            target.locate(&GetEntryByNameN { name })
        }
    };
    match found {
        Ok(reply) => Ok(Some(reply.entry)),
        Err(failure) if failure.is(AbortCode::VL_NOENT) => Ok(None),
        Err(failure) => Err(failure.during("Could not access the VLDB")),
    }
}

/// The entry of a volume that has to be there.
pub(super) fn find(target: &mut Target, volume: &str) -> CommandResult<Entry> {
    look_up(target, volume)?.ok_or_else(|| {
        CommandError::usage(format!(
            "vos: no such entry: '{volume}' is not in the VLDB; `andrew vos listvldb` shows what is"
        ))
    })
}

/// A name that no volume can have.
pub(super) fn bad_name(name: &str) -> CommandError {
    CommandError::usage(format!(
        "vos: '{name}' is not the name of a volume; use 1 to 22 letters, digits, '.', '-' and '_', not only digits"
    ))
}

/// Name of an entry.
pub(super) fn name_of(entry: &Entry) -> String {
    entry.name.to_string()
}

/// One place of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ShownSite {
    pub(super) server: Ipv4Addr,
    pub(super) partition: String,
    /// `RW` or `RO`.
    pub(super) kind: &'static str,
    /// Not released, new release, old release; empty if there is nothing to say.
    pub(super) state: &'static str,
}

/// An entry as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ShownEntry {
    pub(super) name: String,
    pub(super) read_write: Option<u32>,
    pub(super) read_only: Option<u32>,
    pub(super) backup: Option<u32>,
    pub(super) release_clone: Option<u32>,
    pub(super) sites: Vec<ShownSite>,
    pub(super) locked: bool,
}

impl From<&Entry> for ShownEntry {
    fn from(entry: &Entry) -> Self {
        let exists =
            |flag: EntryFlags, kind: VolumeKind| entry.flags.contains(flag).then(|| entry.id(kind).0);
        let releasing = entry.sites.iter().any(|s| s.flags.contains(SiteFlags::NEW_REPSITE));
        let sites = entry.sites.iter().map(|site| ShownSite {
            server: site.server,
            partition: partition(site.partition.check()),
            kind: if site.flags.contains(SiteFlags::RW_VOLUME) { "RW" } else { "RO" },
            state: match (site.flags.contains(SiteFlags::DONT_USE), releasing) {
                (true, false) => "Not released",
                (_, true) if site.flags.contains(SiteFlags::NEW_REPSITE) => "New release",
                (_, true) => "Old release",
                (false, false) => "",
            },
        });
        Self {
            name: name_of(entry),
            read_write: exists(EntryFlags::RW_EXISTS, VolumeKind::ReadWrite),
            read_only: exists(EntryFlags::RO_EXISTS, VolumeKind::ReadOnly),
            backup: exists(EntryFlags::BACK_EXISTS, VolumeKind::Backup),
            release_clone: Some(entry.clone_id.0).filter(|id| *id != 0),
            sites: sites.collect(),
            locked: entry.flags.intersects(EntryFlags::LOCK_OPERATIONS),
        }
    }
}

/// A partition's name.
pub(super) fn partition(partition: Option<PartitionId>) -> String {
    partition.map_or("/vicep??".into(), |p| p.to_string())
}

impl fmt::Display for ShownEntry {
    /// The block without the name (docs/protocol/volserver.md "Output formats that scripts parse").
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = [
            ("RWrite", self.read_write),
            ("ROnly", self.read_only),
            ("Backup", self.backup),
            ("RClone", self.release_clone),
        ];
        let mut line = String::new();
        for (word, id) in ids.iter().filter_map(|(word, id)| id.map(|id| (word, id))) {
            write!(line, "    {word}: {id:<10}")?;
        }
        writeln!(f, "{line}")?;
        writeln!(f, "    number of sites -> {}", self.sites.len())?;
        for site in &self.sites {
            write!(f, "       server {} partition {} {} Site ", site.server, site.partition, site.kind)?;
            let dashes = if site.state.is_empty() { "" } else { " -- " };
            writeln!(f, "{dashes}{}", site.state)?;
        }
        if self.locked {
            writeln!(f, "    Volume is currently LOCKED ")?;
        }
        Ok(())
    }
}
