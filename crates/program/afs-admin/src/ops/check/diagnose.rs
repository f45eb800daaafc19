//! Diagnosis of a group: its faults, and the corrected entry. Computed from one snapshot of the group,
//! without any call.

mod copies;
mod enter;
mod home;
#[cfg(test)]
mod tests;

use afs_wire::ids::{VolumeId, VolumeKind};
use afs_wire::vl::{Entry, EntryFlags, Site};
use afs_wire::xdr::BoundedVec;

use super::CheckOptions;
use super::entry::is_locked;
use super::finding::{CheckDirection, Fault, Finding, Remedy};
use super::snapshot::{GroupState, SiteVolume};
use crate::ServerPartition;

/// Result of a diagnosis.
#[derive(Debug, Default)]
pub(super) struct Diagnosis {
    pub(super) findings: Vec<Finding>,
    /// The corrected entry; `None` if it is to be deleted, or not created.
    pub(super) entry: Option<Entry>,
}

/// State of a diagnosis.
struct Diagnoser<'a> {
    case: &'a GroupState,
    options: &'a CheckOptions,
    /// The corrected entry so far.
    entry: Entry,
    findings: Vec<Finding>,
}

/// Diagnoses a group.
pub(super) fn diagnose(case: &GroupState, options: &CheckOptions) -> Diagnosis {
    let entry = case.entry.clone().unwrap_or_default();
    let mut diagnoser = Diagnoser { case, options, entry, findings: Vec::new() };
    diagnoser.leftovers();
    if case.entry.is_none() && !diagnoser.enter() {
        return Diagnosis { findings: diagnoser.findings, entry: None };
    }
    diagnoser.damaged();
    diagnoser.home();
    diagnoser.numbers();
    diagnoser.backup();
    diagnoser.read_only();
    diagnoser.strangers();
    diagnoser.lock();
    let gone = diagnoser.entry.sites.is_empty() || !diagnoser.entry.flags.intersects(SOMETHING);
    Diagnosis { findings: diagnoser.findings, entry: Some(diagnoser.entry).filter(|_| !gone) }
}

const SOMETHING: EntryFlags = EntryFlags::RW_EXISTS.with(EntryFlags::RO_EXISTS);

impl Diagnoser<'_> {
    fn name(&self) -> String {
        self.entry.name.to_string()
    }

    /// Adds a fault that a repair corrects.
    fn repair(&mut self, volume: VolumeId, place: Option<ServerPartition>, fault: Fault, says: String) {
        self.find(volume, place, fault, says, Remedy::Repair);
    }

    /// Adds a fault that the administrator decides on.
    fn person(&mut self, seen: &SiteVolume, fault: Fault, says: String, run: String) {
        self.find(seen.info.id, Some(seen.place), fault, says, Remedy::Person(run));
    }

    fn find(
        &mut self,
        volume: VolumeId,
        place: Option<ServerPartition>,
        fault: Fault,
        says: String,
        remedy: Remedy,
    ) {
        let name = self.name();
        self.findings.push(Finding { volume, name, place, fault, says, remedy });
    }

    fn looks_at_volumes(&self) -> bool {
        self.options.direction != CheckDirection::Entries
    }

    fn looks_at_entries(&self) -> bool {
        self.options.direction != CheckDirection::Volumes
    }

    /// Volumes of the group that are not temporary.
    fn seen(&self) -> impl Iterator<Item = SiteVolume> + use<'_> {
        self.case.seen.iter().filter(|s| !s.is_temporary()).copied()
    }

    fn set_sites(&mut self, sites: Vec<Site>) {
        self.entry.sites = BoundedVec::first_of(sites);
    }

    /// Clones that an operation made for itself and that is no longer in progress.
    fn leftovers(&mut self) {
        if !self.looks_at_volumes() {
            return;
        }
        for seen in self.case.seen.iter().filter(|s| s.is_temporary()) {
            let says =
                format!("volume {} on {} was left by an operation that is gone", seen.info.id, seen.place);
            self.person(seen, Fault::Leftover, says, zap(seen));
        }
    }

    fn damaged(&mut self) {
        let damaged: Vec<_> = self.seen().filter(is_damaged).collect();
        for seen in damaged {
            let says = format!("the server of volume {} on {} cannot attach it", seen.info.id, seen.place);
            let run = format!(
                "bos salvage {} -partition {} -volume {}",
                seen.place.server,
                partition(&seen),
                seen.info.id
            );
            self.person(&seen, Fault::Damaged, says, run);
        }
    }

    /// Volumes that claim to be of the group, but that its entry cannot contain.
    fn strangers(&mut self) {
        if !self.looks_at_volumes() {
            return;
        }
        let ids = self.entry.ids;
        let told: Vec<_> = self.findings.iter().filter_map(|f| Some((f.volume, f.place?))).collect();
        let strange = |s: &SiteVolume| {
            !ids.contains(&s.info.id)
                && !self.case.snapshots.contains(&s.info.id)
                && !told.contains(&(s.info.id, s.place))
        };
        let strangers: Vec<_> = self.seen().filter(strange).collect();
        for seen in strangers {
            let says = format!("volume {} ({}) on {} has no entry", seen.info.id, seen.name(), seen.place);
            self.person(&seen, Fault::NoEntry, says, zap(&seen));
        }
    }

    /// Under a lock nothing is repaired: a tool without a journal may be at work.
    fn lock(&mut self) {
        if !is_locked(&self.entry) {
            return;
        }
        let (name, id) = (self.name(), self.entry.id(VolumeKind::ReadWrite));
        let run = format!("andrew vos unlock {name}");
        for finding in self.findings.iter_mut().filter(|f| f.remedy == Remedy::Repair) {
            finding.remedy = Remedy::Person(format!("{run} (if nobody is at work), and check again"));
        }
        let says = "the entry is locked, and no operation in the journal has it".to_owned();
        self.find(id, None, Fault::Lock, says, Remedy::Person(format!("{run} (if nobody is at work)")));
    }
}

fn is_damaged(seen: &SiteVolume) -> bool {
    use afs_wire::vol::InfoStatus;
    !matches!(seen.info.status, InfoStatus::OK | InfoStatus::BUSY)
}

fn partition(seen: &SiteVolume) -> String {
    seen.place.partition.check().map_or_else(|| seen.place.partition.0.to_string(), |p| p.to_string())
}

/// The command that deletes one volume at one site.
fn zap(seen: &SiteVolume) -> String {
    format!("andrew vos zap {} {} {}", seen.place.server, partition(seen), seen.info.id)
}

/// The commands that keep what a second read-write volume has in a file, and then delete it: a server that was cut off may have taken changes
/// that are nowhere else.
fn save_and_zap(seen: &SiteVolume) -> String {
    let (server, partition, id) = (seen.place.server, partition(seen), seen.info.id);
    format!("andrew vos dump {id} -server {server} -partition {partition} -file {id}.dump && {}", zap(seen))
}

/// The command that sets the site of the read-write volume.
fn change_location(seen: &SiteVolume, name: &str) -> String {
    format!("andrew vos changeloc {} {} {name}", seen.place.server, partition(seen))
}
