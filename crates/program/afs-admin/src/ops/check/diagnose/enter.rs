//! Diagnosis of volumes without an entry.

use afs_wire::ids::VolumeKind;
use afs_wire::vl::{Entry, EntryFlags, NameChars, SiteFlags};
use afs_wire::volname;

use super::{Diagnoser, Fault, SiteVolume, save_and_zap, zap};
use crate::ops::check::finding::Remedy;

impl Diagnoser<'_> {
    /// Creates the entry that the volumes need; returns whether there is one.
    pub(super) fn enter(&mut self) -> bool {
        if !self.looks_at_volumes() {
            return false;
        }
        let of_kind = |kind| self.seen().filter(move |s| s.kind() == Some(kind)).collect::<Vec<_>>();
        let (writable, read_only) = (of_kind(VolumeKind::ReadWrite), of_kind(VolumeKind::ReadOnly));
        let entry = match (writable.as_slice(), read_only.as_slice()) {
            ([one], _) => self.of_read_write(one),
            ([], [first, ..]) if read_only.iter().all(|s| s.info.id == first.info.id) => {
                of_read_only(&read_only, first)
            }
            ([], []) => match self.case.seen.iter().find(|s| self.case.snapshots.contains(&s.info.id)) {
                Some(snapshot) => of_snapshot(snapshot),
                None => return self.not_to_be_entered(),
            },
            _ => return self.not_to_be_entered(),
        };
        if self.case.taken.contains(&entry.name.to_string()) {
            return self.not_to_be_entered();
        }
        let volume = entry.ids.iter().copied().find(|id| id.0 != 0).unwrap_or_default();
        let places: Vec<_> = self.seen().map(|s| s.place.to_string()).collect();
        self.entry = entry;
        let says = format!("it is on {}, and has no entry", places.join(" and "));
        self.find(volume, None, Fault::NoEntry, says, Remedy::Repair);
        true
    }

    fn not_to_be_entered(&mut self) -> bool {
        let all: Vec<_> = self.seen().collect();
        let writable = all.iter().filter(|s| s.kind() == Some(VolumeKind::ReadWrite)).count();
        for seen in all {
            let (id, name, place) = (seen.info.id, seen.name(), seen.place);
            let base = volname::split(&name).0.to_owned();
            let (fault, says, run) = if seen.is_held() {
                let says = format!("volume {id} on {place} has no entry, and a transaction holds it");
                (Fault::NoEntry, says, format!("andrew vos status {}", place.server))
            } else if writable > 1 {
                let says = format!("volume {id} ({name}) is on {place} and elsewhere, and has no entry");
                (Fault::TwoReadWrite, says, save_and_zap(&seen))
            } else if self.case.taken.contains(&base) {
                let says =
                    format!("volume {id} on {place} has no entry, and its name {base} is another volume's");
                (Fault::NoEntry, says, zap(&seen))
            } else {
                (Fault::NoEntry, format!("volume {id} ({name}) on {place} has no entry"), zap(&seen))
            };
            self.person(&seen, fault, says, run);
        }
        false
    }

    fn of_read_write(&self, seen: &SiteVolume) -> Entry {
        let info = &seen.info;
        Entry {
            ids: [info.id, info.clone_id, info.backup_id],
            flags: EntryFlags::RW_EXISTS,
            ..of(seen, SiteFlags::RW_VOLUME)
        }
    }
}

fn of(seen: &SiteVolume, flags: SiteFlags) -> Entry {
    let name = seen.name();
    Entry {
        name: NameChars::truncated(volname::split(&name).0.as_bytes()),
        sites: afs_wire::xdr::BoundedVec::first_of([seen.place.site(flags)]),
        ..Entry::default()
    }
}

fn of_read_only(all: &[SiteVolume], first: &SiteVolume) -> Entry {
    let sites = all.iter().map(|s| s.place.site(SiteFlags::RO_VOLUME));
    Entry {
        ids: [first.info.parent_id, first.info.id, afs_wire::ids::VolumeId(0)],
        flags: EntryFlags::RO_EXISTS,
        sites: afs_wire::xdr::BoundedVec::first_of(sites),
        ..of(first, SiteFlags::RO_VOLUME)
    }
}

/// The entry as `vos snapshot create` makes it.
fn of_snapshot(seen: &SiteVolume) -> Entry {
    let none = afs_wire::ids::VolumeId(0);
    Entry {
        name: NameChars::truncated(seen.name().as_bytes()),
        ids: [seen.info.id, none, none],
        flags: EntryFlags::RW_EXISTS,
        ..of(seen, SiteFlags::RW_VOLUME)
    }
}
