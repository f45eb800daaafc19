//! `andrew vos examine`: a volume at its sites, and its entry.

use super::entries::{ShownEntry, partition};
use super::operations::Shown as Operation;
use super::ops::{Ops, told};
use super::volume_text::ShownVolume;
use crate::error::CommandResult;
use crate::output;
use afs_admin::{Admin, AdminResult, Group, PartitionState, ServerPartition, where_it_is_told};
use afs_wire::ids::VolumeKind;
use afs_wire::vl::{Site, SiteFlags};
use afs_wire::vol::{DataRoute, DriveCount, Lending};
use serde::Serialize;
use std::fmt;

/// Options of `andrew vos examine`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew vos examine root.cell\n  andrew vos exa -id 536870915")]
pub struct Args {
    /// The volume's name or number
    #[arg(value_name = "NAME", required_unless_present = "id")]
    bare: Option<String>,
    /// The same, as OpenAFS's vos takes it
    #[arg(long, value_name = "NAME", conflicts_with = "bare")]
    id: Option<String>,
}

#[derive(Serialize)]
struct VolumeDetails {
    volumes: Vec<ShownVolume>,
    entry: ShownEntry,
    unreachable: Vec<String>,
    /// Where the bytes of its files may be read and stored, if its server can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    data_path: Option<&'static str>,
    /// On how many drives its data are when a store is complete: 0 is the default of the partition.
    #[serde(skip_serializing_if = "Option::is_none")]
    copies: Option<u8>,
    /// Over how many drives the data of each file go round.
    #[serde(skip_serializing_if = "Option::is_none")]
    width: Option<u8>,
    /// Whether its directories may be leased to mounts, if its server can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    leases: Option<&'static str>,
    /// The operation that holds the entry's lock, if the journal may be read and has it.
    operation: Option<Operation>,
    /// Whether the journal was read and has no such operation.
    #[serde(skip)]
    held_by_nobody: bool,
}

impl Args {
    /// Prints the volume at each of its sites, then its entry.
    ///
    /// # Errors
    /// The volume does not exist, or no location server replies.
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let name = self.bare.or(self.id).unwrap_or_default();
        let answer = ops.run(|admin| async move { examine(&admin, &name).await })?;
        output::show(json, &answer);
        Ok(())
    }
}

async fn examine(admin: &Admin, name: &str) -> AdminResult<VolumeDetails> {
    let group = admin.group(name).await?;
    let (mut volumes, mut unreachable) = (Vec::new(), Vec::new());
    for site in group.entry.sites.iter().filter(|s| has(s, group.kind)) {
        match at(admin, site, &group).await {
            Ok(Some(volume)) => volumes.push(volume),
            // A copy before its first release does not exist yet.
            Ok(None) if site.flags.contains(SiteFlags::DONT_USE) => {}
            Ok(None) => unreachable.push(format!(
                "vos: volume {} is not on {}, where the VLDB has it; `andrew vos check` compares them",
                group.wanted(),
                ServerPartition::from(site)
            )),
            Err(error) => unreachable.push(told(&error).message),
        }
        unreachable.extend(ill_partition(admin, ServerPartition::from(site)).await);
    }
    let entry = ShownEntry::from(&group.entry);
    // Users who may not read the journal see the volume all the same.
    let open = if entry.locked { admin.operations().await.ok() } else { None };
    let ids = group.entry.ids;
    let holder = open.iter().flatten().find(|record| ids.contains(&record.draft.volume));
    let (operation, held_by_nobody) = (holder.map(Operation::from), open.is_some() && holder.is_none());
    let (data_path, placement, leases) = match volumes.first() {
        Some(volume) => {
            let path = admin.route_at(volume.server, group.wanted()).await.map(DataRoute::name);
            let leases = admin.lending_at(volume.server, group.wanted()).await.map(Lending::name);
            (path, admin.placement_at(volume.server, group.wanted()).await, leases)
        }
        None => (None, None, None),
    };
    let copies = placement.map(|placement| placement.copies.map_or(0, DriveCount::get));
    let width = placement.map(|placement| placement.width.get());
    Ok(VolumeDetails {
        volumes,
        entry,
        unreachable,
        data_path,
        copies,
        width,
        leases,
        operation,
        held_by_nobody,
    })
}

/// A line about a partition that is not well.
async fn ill_partition(admin: &Admin, place: ServerPartition) -> Option<String> {
    let word = match admin.partition_state(place).await.ok()? {
        PartitionState::Online(_) => return None,
        ill => ill.word(),
    };
    Some(format!("vos: the partition {place} is {word}; {}", where_it_is_told(place)))
}

/// Whether a site has a volume of this kind. A backup volume is at the site of its read-write volume.
fn has(site: &Site, kind: VolumeKind) -> bool {
    let flag = if kind == VolumeKind::ReadOnly { SiteFlags::RO_VOLUME } else { SiteFlags::RW_VOLUME };
    site.flags.contains(flag)
}

async fn at(admin: &Admin, site: &Site, group: &Group) -> AdminResult<Option<ShownVolume>> {
    let info = admin.volume_at(ServerPartition::from(site), group.wanted()).await?;
    Ok(info.map(|info| ShownVolume::new(&info, site.server, partition(site.partition.check()))))
}

impl fmt::Display for VolumeDetails {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for volume in &self.volumes {
            volume.line(&mut text, true)?;
            volume.details(&mut text)?;
            text.push('\n');
        }
        self.unreachable.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        write!(f, "{text}{}", self.entry)?;
        // OpenAFS's tools show none, so the usual one is not told.
        if let Some(path) = self.data_path.filter(|path| *path != DataRoute::default().name()) {
            writeln!(f, "    Data path   {path}")?;
        }
        if let Some(copies) = self.copies.filter(|copies| *copies != 0) {
            writeln!(f, "    Copies      {copies}")?;
        }
        if let Some(width) = self.width.filter(|width| *width != 1) {
            writeln!(f, "    Width       {width}")?;
        }
        if let Some(leases) = self.leases.filter(|leases| *leases != Lending::default().name()) {
            writeln!(f, "    Leases      {leases}")?;
        }
        match &self.operation {
            Some(operation) => writeln!(f, "    by {operation} "),
            None if self.held_by_nobody => {
                let unlock = format!("andrew vos unlock {}", self.entry.name);
                writeln!(f, "    by no operation in the journal; `{unlock}` ends it, if no tool is using it ")
            }
            None => Ok(()),
        }
    }
}
