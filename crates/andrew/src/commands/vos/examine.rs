//! `andrew vos examine`.

use super::entries::{self, ShownEntry};
use super::reach::Target;
use super::show::ShownVolume;
use crate::error::CommandResult;
use crate::output;
use afs_wire::ids::{VolumeId, VolumeKind};
use afs_wire::vl::{Entry, Site, SiteFlags};
use afs_wire::vol::ListOneVolume;
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
struct Answer {
    volumes: Vec<ShownVolume>,
    entry: ShownEntry,
    unreachable: Vec<String>,
}

impl Args {
    /// Prints the volume at each of its sites, then its entry.
    ///
    /// # Errors
    /// No such volume, or no location server answers.
    pub fn run(self, target: &mut Target, json: bool) -> CommandResult {
        let name = self.bare.or(self.id).unwrap_or_default();
        let entry = entries::find(target, &name)?;
        let (kind, id) = wanted(&entry, &name);
        let (mut volumes, mut unreachable) = (Vec::new(), Vec::new());
        for site in entry.sites.iter().filter(|s| has(s, kind)) {
            match at(target, site, id) {
                Ok(volume) => volumes.extend(volume),
                Err(line) => unreachable.push(line),
            }
        }
        output::show(json, &Answer { volumes, entry: ShownEntry::from(&entry), unreachable });
        Ok(())
    }
}

/// Which volume of the group was meant: by its number, or by the ending of its name.
fn wanted(entry: &Entry, name: &str) -> (VolumeKind, VolumeId) {
    let by_number = |kind: &VolumeKind| name.parse() == Ok(entry.id(*kind).0);
    let kinds = [VolumeKind::ReadWrite, VolumeKind::ReadOnly, VolumeKind::Backup];
    let kind = kinds.into_iter().find(by_number).unwrap_or_else(|| {
        if name.ends_with(".readonly") {
            VolumeKind::ReadOnly
        } else if name.ends_with(".backup") {
            VolumeKind::Backup
        } else {
            VolumeKind::ReadWrite
        }
    });
    (kind, entry.id(kind))
}

/// A backup volume is where its read-write volume is.
fn has(site: &Site, kind: VolumeKind) -> bool {
    let flag = if kind == VolumeKind::ReadOnly { SiteFlags::RO_VOLUME } else { SiteFlags::RW_VOLUME };
    site.flags.contains(flag)
}

fn at(target: &mut Target, site: &Site, volume: VolumeId) -> Result<Vec<ShownVolume>, String> {
    let partition = entries::partition(site.partition.check());
    let reply = target.volume(site.server, &ListOneVolume { partition: site.partition, volume });
    let shown = |reply: afs_wire::vol::ListVolumesReply| {
        reply.volumes.iter().map(|info| ShownVolume::new(info, site.server, partition.clone())).collect()
    };
    reply.map(shown).map_err(|f| {
        f.during(&format!("Could not fetch the information about volume {} from {}", volume.0, site.server))
            .message
    })
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for volume in &self.volumes {
            volume.line(&mut text, true)?;
            volume.details(&mut text)?;
            text.push('\n');
        }
        self.unreachable.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        write!(f, "{text}{}", self.entry)
    }
}
