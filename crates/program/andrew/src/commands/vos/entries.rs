//! Entries of the location database in the output.

use afs_wire::ids::{PartitionId, VolumeKind};
use afs_wire::vl::{Entry, EntryFlags, SiteFlags};
use serde::{Serialize, Serializer};
use std::fmt::{self, Write};
use std::net::Ipv4Addr;

/// One site of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ShownSite {
    pub(super) server: Ipv4Addr,
    pub(super) partition: String,
    /// `RW` or `RO`.
    #[serde(serialize_with = "role")]
    pub(super) role: &'static str,
    /// State of the site: not released, new release, old release; otherwise empty.
    pub(super) state: &'static str,
}

/// An entry in the output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ShownEntry {
    pub(super) name: String,
    #[serde(rename = "read_write_id")]
    pub(super) read_write: Option<u32>,
    #[serde(rename = "read_only_id")]
    pub(super) read_only: Option<u32>,
    #[serde(rename = "backup_id")]
    pub(super) backup: Option<u32>,
    #[serde(rename = "release_clone_id")]
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
            role: if site.flags.contains(SiteFlags::RW_VOLUME) { "RW" } else { "RO" },
            state: match (site.flags.contains(SiteFlags::DONT_USE), releasing) {
                (true, false) => "Not released",
                (_, true) if site.flags.contains(SiteFlags::NEW_REPSITE) => "New release",
                (_, true) => "Old release",
                (false, false) => "",
            },
        });
        Self {
            name: entry.name.to_string(),
            read_write: exists(EntryFlags::RW_EXISTS, VolumeKind::ReadWrite),
            read_only: exists(EntryFlags::RO_EXISTS, VolumeKind::ReadOnly),
            backup: exists(EntryFlags::BACK_EXISTS, VolumeKind::Backup),
            release_clone: Some(entry.clone_id.0).filter(|id| *id != 0),
            sites: sites.collect(),
            locked: entry.flags.intersects(EntryFlags::LOCK_OPERATIONS),
        }
    }
}

/// Serializes the role: which of the entry's volumes the site has. The location database does not distinguish a
/// snapshot from a read-write volume.
fn role<S: Serializer>(role: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(if role == "RW" { "read-write" } else { "read-only" })
}

/// A partition's name.
pub(super) fn partition(partition: Option<PartitionId>) -> String {
    partition.map_or("/vicep??".into(), |p| p.to_string())
}

impl fmt::Display for ShownEntry {
    /// Formats the lines after the name (docs/protocol/volserver.md "Output formats that scripts parse").
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
            write!(f, "       server {} partition {} {} Site ", site.server, site.partition, site.role)?;
            let dashes = if site.state.is_empty() { "" } else { " -- " };
            writeln!(f, "{dashes}{}", site.state)?;
        }
        if self.locked {
            writeln!(f, "    Volume is currently LOCKED ")?;
        }
        Ok(())
    }
}
