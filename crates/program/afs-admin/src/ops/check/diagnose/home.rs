//! Diagnosis of the read-write volume: its site, and its header.

use afs_wire::ids::{VolumeId, VolumeKind};
use afs_wire::vl::{EntryFlags, NameChars, SiteFlags};

use super::{Diagnoser, Fault, SiteVolume, change_location, save_and_zap};
use crate::ServerPartition;
use crate::group::home;
use crate::ops::check::entry::is_kind;
use crate::ops::check::finding::{GivenUp, Remedy};
use crate::ops::check::snapshot::SiteReply;

impl Diagnoser<'_> {
    pub(super) fn home(&mut self) {
        let id = self.entry.id(VolumeKind::ReadWrite);
        let have: Vec<_> = self.seen().filter(|s| s.info.id == id && id.0 != 0).collect();
        if have.iter().any(|seen| self.is_of_another_kind(seen)) {
            return;
        }
        let home = home(&self.entry);
        match home {
            Some(home) if have.iter().any(|s| s.place == home) => self.at_home(home, &have),
            Some(home) if !self.case.answers(home) => self.home_is_away(home, &have),
            _ => self.not_at_home(id, home, &have),
        }
    }

    fn is_of_another_kind(&mut self, seen: &SiteVolume) -> bool {
        if seen.is_held() || is_kind(&self.entry, VolumeKind::ReadWrite, &seen.info) {
            return false;
        }
        let says = format!("volume {} on {} is not a read-write volume", seen.info.id, seen.place);
        self.person(seen, Fault::Kind, says, format!("andrew vos listvol {} -long", seen.place.server));
        true
    }

    fn at_home(&mut self, home: ServerPartition, have: &[SiteVolume]) {
        for other in have.iter().filter(|s| s.place != home) {
            let says = format!(
                "a second read-write volume {} is on {}; the entry has {home}, and each may have changes that the other has not",
                other.info.id, other.place
            );
            let run = format!(
                "{} (or `{}`, if it is the newer one)",
                save_and_zap(other),
                change_location(other, &self.name())
            );
            self.person(other, Fault::TwoReadWrite, says, run);
        }
        if !self.looks_at_volumes() {
            return;
        }
        let id = self.entry.id(VolumeKind::ReadWrite);
        if !self.entry.flags.contains(EntryFlags::RW_EXISTS) {
            self.entry.flags = self.entry.flags.with(EntryFlags::RW_EXISTS);
            self.repair(
                id,
                Some(home),
                Fault::Flag,
                "the entry says that there is no read-write volume".into(),
            );
        }
        if let Some(seen) = have.iter().find(|s| s.place == home && !s.is_held()) {
            self.named(seen);
        }
    }

    /// The header's name is authoritative, as for OpenAFS's tools, unless it is another volume's.
    fn named(&mut self, seen: &SiteVolume) {
        let (there, here) = (seen.name(), self.name());
        if there == here {
            return;
        }
        let says = format!("its server calls it {there}");
        if self.case.taken.contains(&there) || there.is_empty() {
            let run = format!("andrew vos rename {here} NEW (the name {there} is another volume's)");
            self.person(seen, Fault::Name, says, run);
            return;
        }
        self.repair(seen.info.id, Some(seen.place), Fault::Name, says);
        self.entry.name = NameChars::truncated(there.as_bytes());
    }

    fn home_is_away(&mut self, home: ServerPartition, have: &[SiteVolume]) {
        let gone = self.case.asked.get(&home) == Some(&SiteReply::NoPartition);
        for seen in have {
            let says = format!("it is on {}; the entry has {home}, which does not answer", seen.place);
            let run =
                format!("{} (if what is on {home} is lost or older)", change_location(seen, &self.name()));
            self.person(seen, Fault::Elsewhere, says, run);
        }
        if gone && have.is_empty() && self.looks_at_entries() {
            let id = self.entry.id(VolumeKind::ReadWrite);
            let says = format!("the entry has it on {home}, and the server has no such partition now");
            let run = format!("andrew vos partinfo {}", home.server);
            self.find(id, Some(home), Fault::Missing, says, Remedy::Person(run));
        }
    }

    fn not_at_home(&mut self, id: VolumeId, home: Option<ServerPartition>, have: &[SiteVolume]) {
        match have {
            [one] if self.looks_at_volumes() => {
                let had = home.map_or("no place of it".to_owned(), |home| format!("{home}, where it is not"));
                self.repair(
                    id,
                    Some(one.place),
                    Fault::Elsewhere,
                    format!("it is on {}; the entry has {had}", one.place),
                );
                self.move_home(Some(one.place));
            }
            [] if self.looks_at_entries() => self.is_nowhere(id, home),
            [_, _, ..] => {
                for seen in have {
                    let says =
                        format!("it is on {} and elsewhere, and not where the entry has it", seen.place);
                    let run = change_location(seen, &self.name());
                    self.person(seen, Fault::TwoReadWrite, says, run);
                }
            }
            _ => {}
        }
    }

    fn is_nowhere(&mut self, id: VolumeId, home: Option<ServerPartition>) {
        if home.is_none() && !self.entry.flags.contains(EntryFlags::RW_EXISTS) {
            return;
        }
        let says =
            home.map_or("the entry has it, and no place of it".into(), |h| format!("it is not on {h}"));
        if self.case.some_silent {
            // It may be on a server that does not reply now.
            let run = "andrew vos check, when all servers answer".to_owned();
            self.find(id, home, Fault::Missing, says, Remedy::Person(run));
            return;
        }
        if !self.is_given_up(id) {
            let name = self.name();
            let run = format!("andrew vos check --repair --lost {name} (if no disk has it any more)");
            self.find(id, home, Fault::Missing, says, Remedy::Person(run));
            return;
        }
        self.repair(id, home, Fault::Missing, says);
        self.move_home(None);
    }

    /// Whether the administrator has named the volume as lost.
    fn is_given_up(&self, id: VolumeId) -> bool {
        let (name, number) = (self.name(), id.to_string());
        match &self.options.given_up {
            GivenUp::All => true,
            GivenUp::Named(lost) => lost.iter().any(|lost| *lost == name || *lost == number),
        }
    }

    fn move_home(&mut self, to: Option<ServerPartition>) {
        let stays = |s: &&afs_wire::vl::Site| !s.flags.contains(SiteFlags::RW_VOLUME);
        let mut sites: Vec<_> = self.entry.sites.iter().filter(stays).copied().collect();
        let both = EntryFlags::RW_EXISTS.with(EntryFlags::BACK_EXISTS);
        self.entry.flags = self.entry.flags.without(both);
        if let Some(place) = to {
            sites.insert(0, place.site(SiteFlags::RW_VOLUME));
            self.entry.flags = self.entry.flags.with(EntryFlags::RW_EXISTS);
        }
        self.set_sites(sites);
    }

    /// Ids of copies that the entry lacks and the read-write volume's header has.
    pub(super) fn numbers(&mut self) {
        let id = self.entry.id(VolumeKind::ReadWrite);
        let home = home(&self.entry);
        let header = self.seen().find(|s| s.info.id == id && Some(s.place) == home && !s.is_held());
        let Some(seen) = header.filter(|_| self.looks_at_volumes() && self.case.entry.is_some()) else {
            return;
        };
        let numbers = [(VolumeKind::ReadOnly, seen.info.clone_id), (VolumeKind::Backup, seen.info.backup_id)];
        for (kind, number) in numbers {
            if self.entry.id(kind).0 == 0 && number.0 != 0 && seen.kind() == Some(VolumeKind::ReadWrite) {
                let says = format!("the entry lacks the number {number} of its {}", word(kind));
                self.repair(number, Some(seen.place), Fault::Number, says);
                self.set_number(kind, number);
            }
        }
    }

    pub(super) fn set_number(&mut self, kind: VolumeKind, number: VolumeId) {
        if let Some(id) = self.entry.ids.get_mut(kind.index()) {
            *id = number;
        }
    }
}

pub(super) fn word(kind: VolumeKind) -> &'static str {
    match kind {
        VolumeKind::ReadWrite => "read-write volume",
        VolumeKind::ReadOnly => "read-only copies",
        VolumeKind::Backup => "backup volume",
    }
}
