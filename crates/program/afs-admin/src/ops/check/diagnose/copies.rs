//! Diagnosis of the backup volume and the read-only copies.

use afs_wire::ids::{VolumeId, VolumeKind};
use afs_wire::vl::{EntryFlags, SITES_MAX, Site, SiteFlags};

use super::{Diagnoser, Fault, SiteVolume, zap};
use crate::ServerPartition;
use crate::group::home;
use crate::ops::check::entry::name_of;

impl Diagnoser<'_> {
    /// Volumes that are the group's copy of a kind: by id, or by name.
    fn copies(&self, kind: VolumeKind) -> Vec<SiteVolume> {
        let (id, name) = (self.entry.id(kind), name_of(&self.entry, kind));
        let is = |s: &SiteVolume| {
            let named = s.kind() == Some(kind) && s.name() == name;
            (id.0 != 0 && s.info.id == id) || (named && !self.case.snapshots.contains(&s.info.id))
        };
        self.seen().filter(is).collect()
    }

    fn is_wrong_kind(&mut self, seen: &SiteVolume, kind: VolumeKind) -> bool {
        if seen.is_held() || seen.kind() == Some(kind) {
            return false;
        }
        let says =
            format!("volume {} on {} is none of the {}", seen.info.id, seen.place, super::home::word(kind));
        self.person(seen, Fault::Kind, says, zap(seen));
        true
    }

    pub(super) fn backup(&mut self) {
        let Some(home) = home(&self.entry) else { return };
        let mut here = Vec::new();
        for seen in self.copies(VolumeKind::Backup) {
            if self.is_wrong_kind(&seen, VolumeKind::Backup) {
                return;
            }
            if seen.place == home {
                here.push(seen);
            } else if self.looks_at_volumes() {
                let says =
                    format!("backup volume {} is on {}, and its volume on {home}", seen.info.id, seen.place);
                self.person(&seen, Fault::Elsewhere, says, zap(&seen));
            }
        }
        let exists = self.entry.flags.contains(EntryFlags::BACK_EXISTS);
        // Of several the newest is used.
        let Some(best) = here.iter().max_by_key(|s| s.info.id).copied() else {
            if exists && self.case.answers(home) && self.looks_at_entries() {
                let id = self.entry.id(VolumeKind::Backup);
                self.entry.flags = self.entry.flags.without(EntryFlags::BACK_EXISTS);
                self.repair(id, Some(home), Fault::Missing, format!("there is no backup volume on {home}"));
            }
            return;
        };
        if !self.looks_at_volumes() {
            return;
        }
        for other in here.iter().filter(|s| s.info.id != best.info.id) {
            let says = format!("an older backup volume {} is on {home}", other.info.id);
            self.person(other, Fault::NoEntry, says, zap(other));
        }
        self.enter_backup(best, exists);
        self.named_copy(&best, VolumeKind::Backup);
    }

    fn enter_backup(&mut self, best: SiteVolume, exists: bool) {
        let number = self.entry.id(VolumeKind::Backup);
        if number == best.info.id && exists {
            return;
        }
        let fault = if number == best.info.id { Fault::Flag } else { Fault::Number };
        let says = format!("its backup volume {} is not in the entry", best.info.id);
        self.repair(best.info.id, Some(best.place), fault, says);
        self.set_number(VolumeKind::Backup, best.info.id);
        self.entry.flags = self.entry.flags.with(EntryFlags::BACK_EXISTS);
    }

    fn named_copy(&mut self, seen: &SiteVolume, kind: VolumeKind) {
        let name = name_of(&self.entry, kind);
        if seen.is_held() || seen.name() == name {
            return;
        }
        let group = self.name();
        let run = match kind {
            VolumeKind::Backup => format!("andrew vos remove {name} && andrew vos backup {group}"),
            _ => format!("andrew vos release {group} -f"),
        };
        self.person(seen, Fault::Name, format!("its server calls {name} {}", seen.name()), run);
    }

    pub(super) fn read_only(&mut self) {
        let copies = self.copies(VolumeKind::ReadOnly);
        for seen in &copies {
            if self.is_wrong_kind(seen, VolumeKind::ReadOnly) {
                return;
            }
        }
        if self.looks_at_entries() {
            self.missing_copies(&copies);
        }
        if self.looks_at_volumes() {
            for seen in &copies {
                self.copy_there(seen, &copies);
            }
        }
        self.read_only_flag();
    }

    /// A site without its copy waits for the next release.
    fn missing_copies(&mut self, copies: &[SiteVolume]) {
        let number = self.entry.id(VolumeKind::ReadOnly);
        let mut sites = self.entry.sites.to_vec();
        let mut missing = Vec::new();
        for site in sites.iter_mut().filter(|s| is_copy(s) && !s.flags.contains(SiteFlags::DONT_USE)) {
            let place = ServerPartition::from(&*site);
            if self.case.answers(place) && !copies.iter().any(|s| s.place == place) {
                site.flags = site.flags.with(SiteFlags::DONT_USE).without(SiteFlags::NEW_REPSITE);
                missing.push(place);
            }
        }
        let released = self.entry.flags.contains(EntryFlags::RO_EXISTS);
        for place in missing.into_iter().filter(|_| released) {
            let says = format!("there is no read-only copy on {place}; it waits for a release then");
            self.repair(number, Some(place), Fault::Missing, says);
        }
        if released {
            self.set_sites(sites);
        }
    }

    fn copy_there(&mut self, seen: &SiteVolume, all: &[SiteVolume]) {
        let mut sites = self.entry.sites.to_vec();
        let number = self.entry.id(VolumeKind::ReadOnly);
        let entered = sites.iter().any(|s| is_copy(s) && ServerPartition::from(s) == seen.place);
        if entered && seen.info.id == number {
            self.named_copy(seen, VolumeKind::ReadOnly);
            return;
        }
        let used = number.0 != 0 && all.iter().any(|s| s.info.id == number);
        let beside = sites
            .iter()
            .any(|s| is_copy(s) && s.server == seen.place.server && ServerPartition::from(s) != seen.place);
        if (used && seen.info.id != number) || beside || sites.len() >= SITES_MAX {
            let says =
                format!("read-only volume {} on {} is none of the entry's copies", seen.info.id, seen.place);
            self.person(seen, Fault::Elsewhere, says, zap(seen));
            return;
        }
        if seen.is_held() {
            return;
        }
        self.set_number(VolumeKind::ReadOnly, seen.info.id);
        let says = format!("its read-only copy {} on {} is not in the entry", seen.info.id, seen.place);
        let fault = if seen.info.id == number { Fault::Elsewhere } else { Fault::Number };
        self.repair(seen.info.id, Some(seen.place), fault, says);
        if !entered {
            sites.push(seen.place.site(state_of(seen, all)));
            self.set_sites(sites);
        }
    }

    /// The flag and the existence of read-only copies must agree.
    fn read_only_flag(&mut self) {
        let usable = self.entry.sites.iter().any(|s| is_copy(s) && !s.flags.contains(SiteFlags::DONT_USE));
        let exists = self.entry.flags.contains(EntryFlags::RO_EXISTS);
        let number = self.entry.id(VolumeKind::ReadOnly);
        let here = self.copies(VolumeKind::ReadOnly).iter().any(|s| self.has_usable_site(s.place));
        if exists && !usable && self.looks_at_entries() {
            self.entry.flags = self.entry.flags.without(EntryFlags::RO_EXISTS);
            self.flag(number, "the entry has read-only copies, and no place that has one");
        } else if !exists && here && self.looks_at_volumes() {
            self.entry.flags = self.entry.flags.with(EntryFlags::RO_EXISTS);
            self.flag(number, "the entry says that there is no read-only copy");
        }
    }

    fn has_usable_site(&self, place: ServerPartition) -> bool {
        let usable = |s: &Site| {
            is_copy(s) && !s.flags.contains(SiteFlags::DONT_USE) && ServerPartition::from(s) == place
        };
        self.entry.sites.iter().any(usable)
    }

    /// Consequences of a corrected site are not reported again.
    fn flag(&mut self, number: VolumeId, says: &str) {
        let told = |f: &super::Finding| {
            f.volume == number && matches!(f.fault, Fault::Missing | Fault::Elsewhere | Fault::Number)
        };
        if !self.findings.iter().any(told) {
            self.repair(number, None, Fault::Flag, says.to_owned());
        }
    }
}

fn is_copy(site: &Site) -> bool {
    site.flags.contains(SiteFlags::RO_VOLUME)
}

/// A copy that is older than another waits for the next release: clients would see time run backwards.
fn state_of(seen: &SiteVolume, all: &[SiteVolume]) -> SiteFlags {
    let newest = all.iter().filter(|s| !s.is_held()).map(|s| s.info.update_date).max();
    if newest.is_some_and(|newest| newest > seen.info.update_date) {
        SiteFlags::RO_VOLUME.with(SiteFlags::DONT_USE)
    } else {
        SiteFlags::RO_VOLUME
    }
}
