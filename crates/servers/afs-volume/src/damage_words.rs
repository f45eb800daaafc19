//! Words for rows that are lost: the volumes and files that they belonged to, as far as what is left of the index tells.

use std::collections::BTreeMap;

use afs_kv::RowVisitor;
use bytes::Bytes;

use crate::header::VolumeHeader;
use crate::ids::GroupId;
use crate::key::{
    CHANGES, CUTS, DEADLISTS, DEADROWS, DOOMED, EPOCHS, FREE, GROUPS, HEADERS, LENT, PAGES, SLOTS, VNODES,
};

/// Names of volumes by the groups whose rows they have.
#[derive(Clone, Debug, Default)]
pub struct DamageWords(BTreeMap<GroupId, Vec<String>>);

/// Headers of volumes tell their names.
impl RowVisitor for DamageWords {
    fn row(&mut self, table: &str, _: &[u8], value: &[u8]) {
        if table == HEADERS
            && let Ok(header) = VolumeHeader::decode(Bytes::copy_from_slice(value))
        {
            let volume = format!("{} ({})", header.name, header.id.0);
            self.0.entry(header.group).or_default().push(volume);
        }
    }
}

impl DamageWords {
    /// What a row is of, by its table and key.
    #[must_use]
    pub fn of(&self, table: &str, key: &[u8]) -> String {
        let number = key.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        match (table, number) {
            (HEADERS, Some(volume)) => format!("the volume {volume} itself"),
            (VNODES, Some(group)) => self.of_group("vnode", GroupId(group), key),
            (SLOTS, Some(group)) => self.in_group("the data of files", GroupId(group)),
            (PAGES, Some(group)) => self.in_group("the names in directories", GroupId(group)),
            _ if is_of_group(table) => number.map_or_else(
                || table.to_owned(),
                |group| self.in_group(&format!("rows of {table}"), GroupId(group)),
            ),
            _ => format!("rows of {table}"),
        }
    }

    fn of_group(&self, what: &str, group: GroupId, key: &[u8]) -> String {
        let vnode = key.get(4..).and_then(|rest| rest.first_chunk()).map(|bytes| u32::from_be_bytes(*bytes));
        self.in_group(&vnode.map_or_else(|| what.to_owned(), |vnode| format!("{what} {vnode}")), group)
    }

    fn in_group(&self, what: &str, group: GroupId) -> String {
        match self.0.get(&group) {
            Some(volumes) => format!("{what} of {}", volumes.join(", ")),
            None => format!("{what} of the group of volumes {}", group.0),
        }
    }
}

/// Whether keys of a table begin with the number of a group.
fn is_of_group(table: &str) -> bool {
    [FREE, LENT, GROUPS, EPOCHS, CHANGES, DEADLISTS, DEADROWS, DOOMED, CUTS].contains(&table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::VolumeSpec;
    use afs_wire::ids::{UnixSeconds, ViceId, VolumeId, VolumeKind, VolumeName};

    #[test]
    fn a_lost_row_is_told_by_the_volume_whose_header_is_left() {
        let spec = VolumeSpec {
            id: VolumeId(7),
            name: VolumeName::new("home.alice").unwrap(),
            kind: VolumeKind::ReadWrite,
            parent: VolumeId(0),
            owner: ViceId(1),
            max_quota: 5000,
            root: None,
        };
        let header = VolumeHeader::new(&spec, GroupId(9), UnixSeconds(77));
        let mut words = DamageWords::default();
        words.row(HEADERS, &[0, 0, 0, 7], &header.encode());
        words.row(HEADERS, b"", b"no header");
        let key = [0, 0, 0, 9, 0, 0, 0, 5, 0, 0, 0, 1];
        assert_eq!(words.of(VNODES, &key), "vnode 5 of home.alice (7)");
        assert_eq!(words.of(SLOTS, &[0, 0, 0, 3]), "the data of files of the group of volumes 3");
        assert_eq!(words.of(HEADERS, &[0, 0, 0, 8]), "the volume 8 itself");
        assert_eq!(words.of(FREE, b""), "volume.free");
    }
}
