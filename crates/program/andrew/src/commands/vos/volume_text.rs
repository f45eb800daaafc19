//! Text and JSON of a volume at a server.

use super::dates;
use crate::units;
use afs_wire::ids::{UnixSeconds, VolumeKind};
use afs_wire::vol::{InfoStatus, VolumeInfo};
use serde::Serialize;
use std::fmt::{self, Write};
use std::net::Ipv4Addr;

/// A volume at a server.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ShownVolume {
    pub(super) name: String,
    pub(super) id: u32,
    /// `read-write`, `read-only`, `backup` or `snapshot`.
    pub(super) kind: &'static str,
    /// `RW`, `RO` or `BK`: the kinds that AFS knows.
    #[serde(skip)]
    pub(super) letters: &'static str,
    /// `OK`, `BUSY` or `UNATTACHABLE`.
    pub(super) status: &'static str,
    pub(super) online: bool,
    pub(super) needs_salvage: bool,
    #[serde(rename = "size_bytes", serialize_with = "units::bytes")]
    pub(super) size_kib: i32,
    #[serde(rename = "quota_bytes", serialize_with = "units::limit")]
    pub(super) quota_kib: i32,
    pub(super) files: i32,
    #[serde(rename = "read_write_id", serialize_with = "units::id")]
    pub(super) parent: u32,
    #[serde(rename = "read_only_id", serialize_with = "units::id")]
    pub(super) clone: u32,
    #[serde(rename = "backup_id", serialize_with = "units::id")]
    pub(super) backup: u32,
    #[serde(serialize_with = "units::time")]
    pub(super) created: u32,
    #[serde(serialize_with = "units::time")]
    pub(super) copied: u32,
    #[serde(serialize_with = "units::time")]
    pub(super) backed_up: u32,
    #[serde(serialize_with = "units::time")]
    pub(super) accessed: u32,
    #[serde(serialize_with = "units::time")]
    pub(super) updated: u32,
    pub(super) accesses_in_the_past_day: i32,
    pub(super) server: Ipv4Addr,
    pub(super) partition: String,
}

impl ShownVolume {
    /// From the reply of the volume server.
    pub(super) fn new(info: &VolumeInfo, server: Ipv4Addr, partition: String) -> Self {
        Self {
            name: info.name.to_string(),
            id: info.id.0,
            kind: units::kind(info.kind.check(), &info.name.to_string()),
            letters: match info.kind.check() {
                Some(VolumeKind::ReadWrite) => "RW",
                Some(VolumeKind::ReadOnly) => "RO",
                Some(VolumeKind::Backup) => "BK",
                None => "??",
            },
            status: match info.status {
                InfoStatus::OK => "OK",
                InfoStatus::BUSY => "BUSY",
                _ => "UNATTACHABLE",
            },
            online: info.in_use,
            needs_salvage: info.needs_salvage,
            size_kib: info.size,
            quota_kib: info.quota_max,
            files: info.file_count,
            parent: info.parent_id.0,
            clone: info.clone_id.0,
            backup: info.backup_id.0,
            created: info.creation_date.0,
            copied: info.copy_date.0,
            backed_up: info.backup_date.0,
            accessed: info.access_date.0,
            updated: info.update_date.0,
            accesses_in_the_past_day: info.day_use,
            server,
            partition,
        }
    }

    /// Writes the line of `listvol`; with two blanks after the size in the long form.
    pub(super) fn line(&self, out: &mut String, long: bool) -> fmt::Result {
        match self.status {
            "BUSY" => return writeln!(out, "**** Volume {} is busy ****", self.id),
            "UNATTACHABLE" => return writeln!(out, "**** Could not attach volume {} ****", self.id),
            _ => {}
        }
        let state = if self.online { "On-line" } else { "Off-line" };
        let gap = if long { "  " } else { " " };
        let salvage = if self.needs_salvage { "**needs salvage**" } else { "" };
        let (name, id, kind, size) = (&self.name, self.id, self.letters, self.size_kib);
        writeln!(out, "{name:<32} {id:>10} {kind} {size:>10} K{gap}{state}{salvage}")
    }

    /// Writes the lines that follow in the long form and in `examine`.
    pub(super) fn details(&self, out: &mut String) -> fmt::Result {
        if self.status != "OK" {
            return Ok(());
        }
        writeln!(out, "    {} {} ", self.server, self.partition)?;
        writeln!(out, "    RWrite {:>10} ROnly {:>10} Backup {:>10} ", self.parent, self.clone, self.backup)?;
        writeln!(out, "    MaxQuota {:>10} K ", self.quota_kib)?;
        writeln!(out, "    Creation    {}", when(self.created))?;
        writeln!(out, "    Copy        {}", when(self.copied))?;
        writeln!(out, "    Backup      {}", when(self.backed_up))?;
        writeln!(out, "    Last Access {}", when(self.accessed))?;
        writeln!(out, "    Last Update {}", when(self.updated))?;
        writeln!(
            out,
            "    {} accesses in the past day (i.e., vnode references)",
            self.accesses_in_the_past_day
        )
    }
}

fn when(seconds: u32) -> String {
    if seconds == 0 { "Never".into() } else { dates::show(UnixSeconds(seconds)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_wire::ids::{KindNumber, VolumeId};
    use afs_wire::vol::NameChars;

    fn info() -> VolumeInfo {
        VolumeInfo {
            name: NameChars::truncated(b"root.cell"),
            id: VolumeId(536_870_915),
            kind: KindNumber(0),
            parent_id: VolumeId(536_870_915),
            status: InfoStatus::OK,
            in_use: true,
            size: 12,
            quota_max: 5000,
            ..VolumeInfo::default()
        }
    }

    #[test]
    fn lines_have_the_form_that_scripts_parse() {
        let volume = ShownVolume::new(&info(), Ipv4Addr::LOCALHOST, "/vicepa".into());
        let mut text = String::new();
        volume.line(&mut text, false).unwrap();
        assert_eq!(text, "root.cell                         536870915 RW         12 K On-line\n");
        text.clear();
        volume.details(&mut text).unwrap();
        assert!(text.starts_with(
            "    127.0.0.1 /vicepa \n    RWrite  536870915 ROnly          0 Backup          0 \n"
        ));
        assert!(text.contains("    Backup      Never\n"));
    }

    #[test]
    fn busy_and_damaged_volumes_are_said() {
        let mut text = String::new();
        for status in [InfoStatus::BUSY, InfoStatus::UNATTACHABLE] {
            let info = VolumeInfo { status, ..info() };
            ShownVolume::new(&info, Ipv4Addr::LOCALHOST, "/vicepa".into()).line(&mut text, false).unwrap();
        }
        assert_eq!(text, "**** Volume 536870915 is busy ****\n**** Could not attach volume 536870915 ****\n");
    }
}
